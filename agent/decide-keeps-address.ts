/** What is known of a Pod that wants an address. */
export type KeptFacts = {
  /** '' when the runtime does not say. */
  readonly uid: string;
  /** Pods that the marks of its name in the supply name; undefined: there is no mark of its name. */
  readonly markUids: ReadonlySet<string> | undefined;
  /** What the Pod itself says; undefined: it is not known here. */
  readonly word: boolean | undefined;
  /** Pods of the node may keep their addresses. */
  readonly isEnabled: boolean;
};

/**
 * Decides whether a Pod gets the address that is kept for it, and no other; undefined when nobody can say. Pure.
 * A mark with its very uid is ipamd's word, good without any API server. Else the Pod's own word; else a mark of its name,
 * which a Pod that keeps nothing does not have. On a node without kept addresses nobody needs to be asked.
 */
export function decideKeepsAddress({ uid, markUids, word, isEnabled }: KeptFacts): boolean | undefined {
  if (uid !== '' && markUids?.has(uid) === true) return true;
  if (word !== undefined) return word;
  if (markUids !== undefined) return true;
  return isEnabled ? undefined : false;
}
