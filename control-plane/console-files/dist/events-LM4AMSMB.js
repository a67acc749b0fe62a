import{c as a,d as b}from"./chunk-VVUCRAT3.js";import"./chunk-6YD3TK4T.js";import"./chunk-BT3KSH6V.js";import"./chunk-MRWNNB7N.js";export{a as EVENT_COLUMNS,b as default};
