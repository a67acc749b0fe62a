//# allFunctionsCalledOnLoad
import{hb as a}from"./chunk-E4LCFVUJ.js";export{a as mount};
