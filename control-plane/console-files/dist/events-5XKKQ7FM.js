import{c as a,d as b}from"./chunk-3YXPFZGU.js";import"./chunk-MJZL5D2Q.js";import"./chunk-OKEO4EDD.js";import"./chunk-E4LCFVUJ.js";export{a as EVENT_COLUMNS,b as default};
