//# allFunctionsCalledOnLoad
import{xb as a}from"./chunk-QSEBCRDL.js";export{a as mount};
