import{c as a,d as b}from"./chunk-2OMZZ5XM.js";import"./chunk-EGHQBRUN.js";import"./chunk-YQTMNVN6.js";import"./chunk-SOS5JLFI.js";export{a as EVENT_COLUMNS,b as default};
