//# allFunctionsCalledOnLoad
import{xb as a}from"./chunk-5FYBTBOC.js";export{a as mount};
