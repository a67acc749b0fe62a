import{d as o,k as e}from"./chunk-7OMVKVT6.js";var n=o(null);function i(){return e(n)}export{n as a,i as b};
