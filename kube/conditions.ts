/** One aspect of an object's state. @see metav1.Condition */
export type Condition = {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message?: string;
  /** RFC 3339; the time of the last change of `status`. */
  readonly lastTransitionTime: string;
  /** The generation of the object that was evaluated. */
  readonly observedGeneration?: number;
};

/** The desired condition, without its time. */
type WantedCondition = Omit<Condition, 'lastTransitionTime'>;

/**
 * Sets one condition in a list, at its place or at the end. Its time moves only when its status changes. When nothing
 * changes, the same list object is returned, so that the caller can skip the write.
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
