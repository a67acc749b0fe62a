/** What the overview imports, so that the file of the application has it: a browser opens one file quicker than ten. */
import "./api/entities";
import "./api/events";
import "./api/security";
import "./ui/async";
import "./ui/bits";
import "./ui/time";
import "./ui/view";
