/**
 * Description of one event reason. It stands beside the code that records the event, so that every event is explained.
 */
export type EventReason = {
  readonly type: 'Normal' | 'Warning';
  /** Kinds of objects that the event is recorded on. */
  readonly objects: readonly string[];
  /** When the event is recorded. */
  readonly cause: string;
  /** What an operator does; '' for nothing. */
  readonly cure: string;
};
