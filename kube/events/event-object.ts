import type { KubeObject } from '../kube-client.ts';

/** The object that an event is about. */
export type InvolvedObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
};

/** Something that happened to an object, described for people. */
export type EventInput = {
  readonly involved: InvolvedObject;
  readonly type: 'Normal' | 'Warning';
  /** One word in camel case: `SubnetExhausted`. */
  readonly reason: string;
  readonly message: string;
};

/** Where a program records events, with its own reasons alone. */
export type EventSink<R extends string> = {
  record(event: Omit<EventInput, 'reason'> & { readonly reason: R }): void;
};

/** The component that reports the event. */
type EventSource = { readonly component: string; readonly host?: string };

/** How many times it happened, and when first and last; RFC 3339. */
type EventTimes = { readonly count: number; readonly firstTime: string; readonly lastTime: string };

/**
 * Longest part of the object's name in an event's name. The limit is 253; the rest is for the part that makes it
 * unique.
 */
const MAX_NAME_CHARS = 220;

/** Returns the namespace for events of an object; `default` for cluster-scoped objects, as the API server requires. */
export function eventNamespace(involved: InvolvedObject): string {
  return involved.namespace ?? 'default';
}

/** Builds the name of an event of an object; `unique` consists of hexadecimal digits. */
export function eventName(involved: InvolvedObject, unique: string): string {
  return `${involved.name.slice(0, MAX_NAME_CHARS).replace(/[.-]+$/, '')}.${unique}`;
}

/** Builds an event of the core group. @see core/v1 Event */
export function eventObject(
  name: string,
  { involved, type, reason, message }: EventInput,
  { component, host }: EventSource,
  times: EventTimes,
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: eventNamespace(involved) },
    involvedObject: involved,
    type,
    reason,
    message,
    source: { component, ...(host === undefined ? {} : { host }) },
    reportingComponent: component,
    reportingInstance: host ?? '',
    firstTimestamp: times.firstTime,
    lastTimestamp: times.lastTime,
    count: times.count,
  };
}
