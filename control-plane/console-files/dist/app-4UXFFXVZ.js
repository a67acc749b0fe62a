//# allFunctionsCalledOnLoad
import{hb as a}from"./chunk-AHPD7QAX.js";export{a as mount};
