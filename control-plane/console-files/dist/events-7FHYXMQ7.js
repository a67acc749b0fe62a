import{c as a,d as b}from"./chunk-WVX6CNQE.js";import"./chunk-FDEJCJEE.js";import"./chunk-6ZNZXRQJ.js";import"./chunk-AHPD7QAX.js";export{a as EVENT_COLUMNS,b as default};
