//# allFunctionsCalledOnLoad
import{hb as a}from"./chunk-MRWNNB7N.js";export{a as mount};
