//# allFunctionsCalledOnLoad
import{sb as a}from"./chunk-SUHW6WF2.js";export{a as mount};
