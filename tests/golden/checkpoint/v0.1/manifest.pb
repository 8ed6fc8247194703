inlaid 0.1.0 ™­¦ï¢4(28:+
json#{"losses":[2.5,2.25],"tokens":7000}B (0JWindex-00000.pbÙ	"@fff1a8d29e6053e0b5c91d2430a80dab25d083f256745406c8a29327eb7b5121(	R4{"train":{"steps":100},"text":"grÃ¶ÃŸer â†’ æ›´å¤§"}Z&{"model_type":"llama","hidden_size":4}bP
/models/base@bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbj%
default{"peft_type":"LORA","r":4}rÆ
@dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd@cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc@eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee‚Y
chat_template.jinja@f24189f08c85a1eb19a737306c3a13e85462ee33d964f28108d64a2485fa2171‚T
tokenizer.json@d101e4828422d51e39c2c270b11abe327ab80116d6d5b56094a278e2916ae0c6}Iþ!