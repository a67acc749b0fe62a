//! The demo backend's shop: a few pages with all that a browser sends to one (forms, a sign-in, JSON, a file).

use hyper::header::{CONTENT_TYPE, HeaderName, LOCATION};
use hyper::{Method, StatusCode};

use super::{Answer, page, set};

/// Where the shop begins.
pub(super) const ROOT: &str = "/shop";

const HTML: &str = "text/html; charset=utf-8";
const GOODS: [(&str, &str); 4] = [
    ("Folding chair", "Beech and canvas, folds flat. Select from three colours; order by noon."),
    ("Garden table", "Seats six. Union of oak and steel; drop leaf on either side."),
    ("Bird house", "For tits and sparrows. Comes with <b>screws & bracket</b>."),
    ("Rain barrel", "200 l, with a tap at 30 cm. Where space is scarce: slim version."),
];
const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#223}\
    nav a{margin-right:1rem}label{display:block;margin:.5rem 0}article{border-top:1px solid #ccd}\n";
const SCRIPT: &str = "addEventListener('load',async()=>{\n\
    const items=await(await fetch('/shop/api/items?limit=3&sort=price')).json();\n\
    const note=document.querySelector('#note');if(note)note.textContent=`${items.length} things in store`;\n\
    document.querySelectorAll('button[data-item]').forEach(button=>button.addEventListener('click',()=>\n\
    fetch('/shop/api/cart',{method:'POST',headers:{'content-type':'application/json'},\n\
    body:JSON.stringify({item:Number(button.dataset.item),quantity:1,options:{colour:'green',gift:false}})})));\n\
    });\n";
const LOGO: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"48\" height=\"48\">\
    <circle cx=\"24\" cy=\"24\" r=\"20\" fill=\"#3a7\"/></svg>\n";

/// The answer to a request below [`ROOT`]; what a form or a script sent is not looked at.
pub(super) fn answer(method: &Method, path: &str) -> Answer {
    let posted = method == Method::POST;
    match path.strip_prefix(ROOT).unwrap_or_default() {
        "" | "/" => html("Demo shop", &index()),
        "/search" => html("Search", "<p>4 things found.</p><p><a href=\"/shop/items/1\">Folding chair</a></p>"),
        "/login" if posted => {
            let mut answer = see_other("/shop/account");
            set(&mut answer, HeaderName::from_static("set-cookie"), "session=4b1d0e2f; Path=/; HttpOnly; SameSite=Lax");
            answer
        }
        "/login" => html("Sign in", LOGIN),
        "/account" => html("Your account", REVIEW),
        "/reviews" | "/pictures" if posted => see_other("/shop/account"),
        "/api/items" => json(&goods()),
        "/api/cart" if posted => json("{\"items\":1,\"total\":{\"amount\":\"39.90\",\"currency\":\"EUR\"}}"),
        "/style.css" => page(StatusCode::OK, "text/css", STYLE),
        "/script.js" => page(StatusCode::OK, "text/javascript", SCRIPT),
        "/logo.svg" => page(StatusCode::OK, "image/svg+xml", LOGO),
        other => match other.strip_prefix("/items/").and_then(|id| id.parse::<usize>().ok()) {
            Some(id) if (1..=GOODS.len()).contains(&id) => item(id),
            _ => page(
                StatusCode::NOT_FOUND,
                HTML,
                "<!doctype html>\n<title>Not found</title><p>There is no such page.</p>\n",
            ),
        },
    }
}

const LOGIN: &str = "<form method=\"post\" action=\"/shop/login\">\
    <label>Name <input name=\"user\" autocomplete=\"username\"></label>\
    <label>Password <input name=\"password\" type=\"password\"></label><button>Sign in</button></form>";
const REVIEW: &str = "<form method=\"post\" action=\"/shop/reviews\"><label>Stars <input name=\"stars\" type=\"number\"></label>\
    <label>Review <textarea name=\"text\"></textarea></label><button>Send</button></form>\
    <form method=\"post\" action=\"/shop/pictures\" enctype=\"multipart/form-data\">\
    <label>Picture <input name=\"picture\" type=\"file\"></label><button>Upload</button></form>";

fn html(title: &str, body: &str) -> Answer {
    let page_text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/shop/style.css\"><script src=\"/shop/script.js\" defer></script></head>\
         <body><nav><img src=\"/shop/logo.svg\" alt=\"\" width=\"24\"> <a href=\"/shop\">Shop</a>\
         <a href=\"/shop/login\">Sign in</a></nav><h1>{title}</h1>{body}<p id=\"note\"></p></body></html>\n"
    );
    page(StatusCode::OK, HTML, page_text)
}

fn index() -> String {
    let list: String = GOODS
        .iter()
        .zip(1..)
        .map(|((name, text), id)| {
            format!("<article><h2><a href=\"/shop/items/{id}\">{name}</a></h2><p>{text}</p></article>")
        })
        .collect();
    format!("<form action=\"/shop/search\"><input name=\"q\" type=\"search\"><button>Search</button></form>{list}")
}

fn item(id: usize) -> Answer {
    let (name, text) = GOODS[id - 1];
    html(name, &format!("<p>{text}</p><button data-item=\"{id}\">Into the cart</button>"))
}

fn goods() -> String {
    let list = GOODS.iter().zip(1..).map(|((name, _), id)| serde_json::json!({"id": id, "name": name}));
    serde_json::Value::from_iter(list).to_string()
}

fn json(body: &str) -> Answer {
    page(StatusCode::OK, "application/json", body.to_owned())
}

fn see_other(to: &'static str) -> Answer {
    let mut answer = page(StatusCode::SEE_OTHER, HTML, "");
    answer.headers_mut().remove(CONTENT_TYPE);
    set(&mut answer, LOCATION, to);
    answer
}

#[cfg(test)]
mod tests {
    use crate::backend::Backend;
    use crate::http::Request;

    #[test]
    fn it_has_pages_forms_and_an_api() {
        let backend = Backend::start();
        let to = backend.address();
        let index = Request::get("/shop").send(to).unwrap();
        assert!(index.status == 200 && index.text().contains("/shop/items/4"));
        assert!(Request::get("/shop/items/2").send(to).unwrap().text().contains("data-item=\"2\""));
        assert_eq!(Request::get("/shop/items/5").send(to).unwrap().status, 404);
        assert_eq!(Request::get("/shop/api/items?limit=3").send(to).unwrap().json()[3]["id"], 4);
        let signed_in =
            Request::post("/shop/login", "application/x-www-form-urlencoded", "user=a&password=b").send(to).unwrap();
        assert_eq!((signed_in.status, signed_in.header("location").as_deref()), (303, Some("/shop/account")));
        assert!(signed_in.header("set-cookie").is_some());
    }
}
