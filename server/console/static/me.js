// Who the reader is and what this server lets him do; asked once, and again after a login.
import { call } from "./api.js";
import { useEffect, useState } from "./ui.js";

let asked = null;

export const forgetMe = () => {
  asked = null;
};

/** What `console/api/me` answers, or null until it is known. */
export function useMe() {
  const [me, setMe] = useState(null);
  useEffect(() => {
    let current = true;
    const mine = (asked ??= call("console/api/me"));
    mine.then((answer) => current && setMe(answer), () => {
      if (asked === mine) asked = null;
    });
    return () => { current = false; };
  }, []);
  return me;
}

/** Why the reader may not administer the server, as words for a button; "" if he may. */
export function adminRefusal(me) {
  if (!me) return "…";
  if (!me.admin_enabled) return "needs admin.enabled";
  return me.authentication && !me.roles.includes("admin") ? "needs the role admin" : "";
}
