"""Tables of written variants: kanji that are one character in two shapes, and company forms."""

_PAIRS = """
髙高 﨑崎 嵜崎 齋斎 齎斎 齊斉 邊辺 邉辺 濱浜 濵浜 澤沢 廣広 國国 嶋島 嶌島 𣘺橋 槗橋 櫻桜 眞真 實実 德徳 惠恵
榮栄 龍竜 瀧滝 澁渋 壽寿 淺浅 萬万 與与 譽誉 圓円 應応 假仮 會会 學学 樂楽 氣気 峯峰 曾曽 冨富 讓譲 顯顕 藏蔵
黑黒 黃黄 靜静 增増 槇槙 𠮷吉 𠮟叱 髮髪 桺柳 凜凛 亙亘 彌弥 禰祢 邨村 舘館 渕淵 渊淵 舩船 劍剣 劔剣 條条 驛駅
鐵鉄 檢検 權権 關関 號号 區区 醫医 體体 臺台 賣売 讀読 變変 發発 圖図 數数 總総 經経 藝芸 處処 當当 點点 轉転
辭辞 戶戸 內内 吳呉 步歩 每毎 縣県 證証 豫予 續続 繪絵 絕絶 將将 從従 壓圧 圍囲 驗験 險険 檜桧 濟済 劑剤 狹狭
敎教 鷄鶏 莖茎 徑径 輕軽 惡悪 榎榎 穗穂 稻稲 龜亀 燒焼 爐炉 畫画 晝昼 晉晋 卷巻 勳勲 薰薫 鹽塩 塲場 畧略 裏裏
"""

KANJI_VARIANTS = {pair[0]: pair[1] for pair in _PAIRS.split()}
"""Variant to usual form, one character each. 斉 and 斎 stay two: 斉藤 and 斎藤 are two names."""

COMPANY_FORMS = {
    "株": "株式会社",
    "有": "有限会社",
    "社": "社団法人",
    "財": "財団法人",
    "名": "合名会社",
    "資": "合資会社",
}
"""The character in brackets (㈱ is (株) after NFKC) and the form written out."""
