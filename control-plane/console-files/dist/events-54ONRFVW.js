import{c as a,d as b}from"./chunk-TZTPG4I7.js";import"./chunk-ZBPP4S5X.js";import"./chunk-CX22KEKS.js";import"./chunk-QSEBCRDL.js";export{a as EVENT_COLUMNS,b as default};
