import{g as e}from"./chunk-LUTVUEAY.js";import{e as o}from"./chunk-A7CQC45X.js";var n=o(null);function i(){return e(n)}export{n as a,i as b};
