import{c as a,d as b}from"./chunk-IA2H6USJ.js";import"./chunk-3UYHQNVU.js";import"./chunk-YLYKIFEV.js";import"./chunk-5FYBTBOC.js";export{a as EVENT_COLUMNS,b as default};
