/** One aspect of an object's state. @see metav1.Condition */
export type Condition = {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message?: string;
  /** RFC 3339; when `status` last changed. */
  readonly lastTransitionTime: string;
  /** The generation of the object that was judged. */
  readonly observedGeneration?: number;
};

/** A condition as it is to be, without its time. */
export type WantedCondition = Omit<Condition, 'lastTransitionTime'>;

/**
 * Sets one condition in a list, at its place or at the end. Its time moves only when its status changes; when nothing
 * changes, the very list that came in goes out, so that no write is made. Pure.
 */
export function withCondition(
  conditions: readonly Condition[],
  wanted: WantedCondition,
  nowText: string,
): readonly Condition[] {
  const known = conditions.find((one) => one.type === wanted.type);
  if (known === undefined) return [...conditions, { ...wanted, lastTransitionTime: nowText }];
  if (isSame(known, wanted)) return conditions;
  const { message: _message, ...kept } = known;
  const lastTransitionTime = known.status === wanted.status ? known.lastTransitionTime : nowText;
  return conditions.map((one) => (one === known ? { ...kept, ...wanted, lastTransitionTime } : one));
}

function isSame(known: Condition, wanted: WantedCondition): boolean {
  return (
    known.status === wanted.status &&
    known.reason === wanted.reason &&
    known.message === wanted.message &&
    (wanted.observedGeneration === undefined || known.observedGeneration === wanted.observedGeneration)
  );
}
