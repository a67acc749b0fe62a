"""The people of a recording: each has a name, an account, an address, a browser and a language of their own."""

import random

PEOPLE = 48
PASSWORD = "Quiet-Harbour-{}"
# Where the chosen language is not one that most browsers ask in, English follows it, as browsers do.
LANGUAGES = {
    "en": "en-GB", "de": "de-DE", "fr": "fr-FR", "es": "es-ES", "pl": "pl-PL",
    "ru": "ru-RU", "el": "el-GR", "ar": "ar-EG", "ja": "ja-JP", "zh": "zh-CN",
}
NAMES = {
    "en": ("Ada Thornbury", "Miles O'Keefe", "Ruth Penhallow", "Owen Sadler", "Tess D'Arby"),
    "de": ("Jörg Weißmüller", "Käthe Brückner", "Anton Gröbe", "Silke Häßler", "Uwe Dörfling"),
    "fr": ("Élodie Garçonnet", "Rémi L'Hostis", "Zoé Bérenger", "Noël d'Aubrac", "Maëlle Crespin"),
    "es": ("Íñigo Peñalba", "Lucía Ordóñez", "Begoña Ibarrola", "Ramón Güell", "Inés Cañizo"),
    "pl": ("Łukasz Wrzós", "Żaneta Świąder", "Paweł Gęsicki", "Małgorzata Ćwik", "Stanisław Dąbek"),
    "ru": ("Вера Лугинина", "Пётр Озерцов", "Нина Щукарёва", "Егор Берёзкин", "Зоя Травина"),
    "el": ("Ελένη Καλλιθέα", "Νίκος Πελαγίδης", "Άννα Θαλασσινού", "Γιώργος Αμπελάς", "Μαρία Λευκάδη"),
    "ar": ("سلمى النهري", "كريم البحيري", "هالة الزيتوني", "ياسر الواحة", "ليلى القمري"),
    "ja": ("川原 みなと", "森下 あおい", "谷口 そら", "浜田 けい", "小林 ゆき"),
    "zh": ("林小溪", "陈望山", "何晓月", "赵一帆", "周青禾"),
}
BROWSERS = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Mobile Safari/537.36",
)


def people(seed, version):
    """All of them, as both kinds of clients read them."""
    chance, everyone = random.Random(seed), []
    for number in range(PEOPLE):
        language = list(LANGUAGES)[number % len(LANGUAGES)]
        login = f"{chance.choice(('oak', 'elm', 'fir', 'ash', 'yew', 'bay'))}{chance.choice(('wood', 'field', 'gate', 'mill'))}{number:02}"
        networks = ("192.0.2.{}", "198.51.100.{}", "203.0.113.{}", "2001:db8:0:{:x}::7")
        everyone.append({
            "number": number, "login": login, "name": NAMES[language][number // len(LANGUAGES) % 5],
            "password": PASSWORD.format(1000 + number * 7), "email": f"{login}@mail.example", "language": language,
            "locale": LANGUAGES[language], "address": networks[number % 4].format(10 + number),
            "agent": BROWSERS[chance.choice((0, 1, 1, 1, 2, 2, 3))].format(version),
        })
    return everyone
