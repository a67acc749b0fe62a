(function () {
"use strict";
var main = document.querySelector("main"), data = main.dataset, sent = false, KEY = "svc-challenge", rounds = 0;
function id(name) { return document.getElementById(name); }
var status = id("s"), retry = id("t");
// What a form would do is nothing that this page wants.
addEventListener("submit", function (e) { e.preventDefault(); });
function say(text, again) { status.hidden = false; status.textContent = text; retry.hidden = !again; if (again) { id("w").hidden = true; retry.focus(); } }
retry.onclick = function () { location.reload(); };
// Whether the last answers brought us back here: then the cookie is not kept, and a further one would not help.
try { var last = JSON.parse(sessionStorage.getItem(KEY)) || [0, 0]; rounds = Date.now() - last[0] < 15e3 ? last[1] : 0; } catch (e) {}
function send(token) {
  if (sent || !token) return;
  sent = true;
  say(data.verifying);
  fetch(location.origin + location.pathname + location.search, {
    method: "POST", headers: { "X-Svc-Challenge": JSON.stringify({ token: typeof token === "string" ? token : JSON.stringify(token), by: data.by }) },
    credentials: "same-origin", cache: "no-store", redirect: "error"
  }).then(function (answer) {
    if (answer.status !== 204) throw answer.status;
    if (data.repeat !== "1") { id("w").hidden = true; return say(data.again); }
    try { sessionStorage.setItem(KEY, JSON.stringify([Date.now(), rounds + 1])); } catch (e) {}
    say(data.done);
    location.reload();
  }).catch(function () { say(data.failed, true); });
}
// For widgets that call back; the others write their token to a field, which tells nobody.
window.svcChallenge = send;
// A script that does not load says so to itself alone, perhaps before the page is whole.
addEventListener("error", function (e) { if (e.target.id === "v" && !sent) { sent = true; say(data.gone, true); } }, true);
document.addEventListener("DOMContentLoaded", function () {
  if (!navigator.cookieEnabled || rounds > 2) {
    try { sessionStorage.removeItem(KEY); } catch (e) {}
    sent = true;
    return say(data.cookies, true);
  }
  var watch = setInterval(function () {
    if (sent) return clearInterval(watch);
    var fields = document.getElementsByName(data.field);
    // A value with a dot in front says how far a widget has come.
    for (var i = 0; i < fields.length; i++) if (fields[i].value && fields[i].value[0] !== ".") return send(fields[i].value);
  }, 150);
});
})();
