import { MAX_TEXT, messageText } from '../runtime/limit-text.ts';

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
type DesiredCondition = Omit<Condition, 'lastTransitionTime'>;

/**
 * Sets one condition in a list, at its place or at the end. Its time moves only when its status changes. When nothing
 * changes, the same list object is returned, so that the caller can skip the write. A message is cut at 2,048
 * characters.
 */
export function withCondition(
  conditions: readonly Condition[],
  condition: DesiredCondition,
  nowText: string,
): readonly Condition[] {
  const desired =
    condition.message === undefined
      ? condition
      : { ...condition, message: messageText(condition.message, MAX_TEXT.condition) };
  const known = conditions.find((one) => one.type === desired.type);
  if (known === undefined) return [...conditions, { ...desired, lastTransitionTime: nowText }];
  if (isSame(known, desired)) return conditions;
  const { message: _message, ...kept } = known;
  const lastTransitionTime = known.status === desired.status ? known.lastTransitionTime : nowText;
  return conditions.map((one) => (one === known ? { ...kept, ...desired, lastTransitionTime } : one));
}

function isSame(known: Condition, desired: DesiredCondition): boolean {
  return (
    known.status === desired.status &&
    known.reason === desired.reason &&
    known.message === desired.message &&
    (desired.observedGeneration === undefined || known.observedGeneration === desired.observedGeneration)
  );
}
