import{c as a,d as b}from"./chunk-CKTPEOOI.js";import"./chunk-H37NDXAI.js";import"./chunk-6UMHE7NZ.js";import"./chunk-SUHW6WF2.js";export{a as EVENT_COLUMNS,b as default};
