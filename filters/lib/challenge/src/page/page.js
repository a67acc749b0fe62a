(function () {
"use strict";
// Looks for nonces of challenge c with d zero bits; w, one digit, keeps several of them apart. A nonce is a prefix that
// puts its last twelve digits on whole words of the last block, so that trying one is three stores and one compression.
function search(c, d, w) {
  var K = new Int32Array(64), W = new Int32Array(64), T = new Int32Array(1e4), R = new Int32Array(8), i, p = 2, n = 0, f;
  var S = new Int32Array(8);
  // The constants are the fractions of the roots of the first primes.
  function root(x, e) { f = Math.pow(x, e); return (f - Math.floor(f)) * 4294967296 | 0; }
  for (; n < 64; p++) {
    for (i = 2; i * i <= p && p % i; i++);
    if (i * i > p) { if (n < 8) S[n] = root(p, 1 / 2); K[n++] = root(p, 1 / 3); }
  }
  for (i = 0; i < 1e4; i++) T[i] = (48 + (i / 1e3 | 0)) << 24 | (48 + (i / 100 | 0) % 10) << 16 | (48 + (i / 10 | 0) % 10) << 8 | 48 + i % 10;
  function block(S) {
    var a = S[0], b = S[1], c = S[2], d = S[3], e = S[4], f = S[5], g = S[6], h = S[7], i, x, y, t, u;
    for (i = 16; i < 64; i++) {
      x = W[i - 15]; y = W[i - 2];
      W[i] = W[i - 16] + W[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10) | 0;
    }
    for (i = 0; i < 64; i++) {
      t = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (g ^ e & (f ^ g)) + K[i] + W[i] | 0;
      u = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b ^ c & (a ^ b)) | 0;
      h = g; g = f; f = e; e = d + t | 0; d = c; c = b; b = a; a = t + u | 0;
    }
    R[0] = S[0] + a; R[1] = S[1] + b; R[2] = S[2] + c; R[3] = S[3] + d;
    R[4] = S[4] + e; R[5] = S[5] + f; R[6] = S[6] + g; R[7] = S[7] + h;
  }
  var s = c + ":" + w;
  while (s.length % 4 || s.length % 64 > 40) s += "0";
  function words(from, to) {
    for (i = from; i < to; i += 4) W[i % 64 / 4] = s.charCodeAt(i) << 24 | s.charCodeAt(i + 1) << 16 | s.charCodeAt(i + 2) << 8 | s.charCodeAt(i + 3);
  }
  var whole = s.length - s.length % 64;
  for (n = 0; n < whole; n += 64) { words(n, n + 64); block(S); S.set(R); }
  W.fill(0);
  words(whole, s.length);
  var at = s.length % 64 / 4, shift = 32 - d;
  W[at + 3] = 1 << 31;
  W[15] = (s.length + 12) * 8;
  // Tries so many nonces from the n-th on; the one that solves it, or "".
  return function (n, count) {
    for (var end = n + count; n < end; n++) {
      W[at] = T[n / 1e8 | 0]; W[at + 1] = T[(n / 1e4 | 0) % 1e4]; W[at + 2] = T[n % 1e4];
      block(S);
      if (R[0] >>> shift === 0) return s.slice(c.length + 1) + String(n).padStart(12, "0");
    }
    return "";
  };
}
var main = document.querySelector("main"), data = main.dataset, c = data.c, d = +data.d, tried = 0, over = false, workers = [];
function id(name) { return document.getElementById(name); }
id("m").hidden = false;
var bar = id("b"), status = id("s"), retry = id("t");
function say(text, again) { status.hidden = false; status.textContent = text; bar.hidden = true; retry.hidden = !again; }
retry.onclick = function () { location.reload(); };
// Whether the last solutions brought us back here: then the cookie is not kept, and a further one would not help.
var KEY = "svc-challenge", rounds = 0;
try { var last = JSON.parse(sessionStorage.getItem(KEY)) || [0, 0]; rounds = Date.now() - last[0] < 15e3 ? last[1] : 0; } catch (e) {}
if (!navigator.cookieEnabled || rounds > 2) {
  try { sessionStorage.removeItem(KEY); } catch (e) {}
  return say(data.cookies, true);
}
bar.hidden = status.hidden = false;
function count(n) {
  tried += n;
  // Nobody knows how long it takes: this is the chance to have found it by now.
  var percent = Math.min(99, 100 * (1 - Math.exp(-tried / Math.pow(2, d))));
  bar.firstElementChild.style.transform = "translateX(" + (percent - 100) + "%)";
  bar.setAttribute("aria-valuenow", Math.round(percent));
}
function stop() { over = true; workers.forEach(function (w) { w.terminate(); }); }
function found(nonce) {
  if (over) return;
  stop();
  fetch(location.origin + location.pathname + location.search, {
    method: "POST", headers: { "X-Svc-Challenge": JSON.stringify({ challenge: c, nonce: nonce }) },
    credentials: "same-origin", cache: "no-store", redirect: "error"
  }).then(function (answer) {
    if (answer.status !== 204) throw answer.status;
    if (data.repeat !== "1") return say(data.again);
    try { sessionStorage.setItem(KEY, JSON.stringify([Date.now(), rounds + 1])); } catch (e) {}
    say(data.done);
    location.reload();
  }).catch(function () { say(data.failed, true); });
}
var alone = false;
function slices() {
  if (alone || over) return;
  alone = true;
  var next = search(c, d, 9), n = 0;
  (function slice() {
    var nonce = next(n, 5e3);
    count(5e3); n += 5e3;
    nonce ? found(nonce) : setTimeout(slice);
  })();
}
try {
  var source = "onmessage=function(e){var n=0,a=e.data,next=(" + search + ")(a[0],a[1],a[2]);for(;;){var r=next(n,2e4);n+=2e4;postMessage(r);if(r)break}}";
  var url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  for (var w = 0; w < Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2) - 1)); w++) {
    var worker = new Worker(url);
    worker.onmessage = function (e) { count(2e4); if (e.data) found(e.data); };
    worker.onerror = slices;
    worker.postMessage([c, d, w]);
    workers.push(worker);
  }
} catch (e) { slices(); }
})();
