//# allFunctionsCalledOnLoad
import{hb as a}from"./chunk-SOS5JLFI.js";export{a as mount};
