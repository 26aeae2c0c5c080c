import type { KubeObject } from '../kube-client.ts';

/** What an event is about. */
export type InvolvedObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
};

/** Something that happened to an object, for people. */
export type EventInput = {
  readonly involved: InvolvedObject;
  readonly type: 'Normal' | 'Warning';
  /** One word: `SubnetExhausted`. */
  readonly reason: string;
  readonly message: string;
};

/** Who tells it. */
export type EventSource = { readonly component: string; readonly host?: string };

/** How often it happened, and when; RFC 3339. */
export type EventTimes = { readonly count: number; readonly firstTime: string; readonly lastTime: string };

/** The API server refuses longer ones. */
const MOST_MESSAGE_CHARS = 1024;
/** Leaves room for the part that makes the name the event's own, of 253. */
const MOST_NAME_CHARS = 220;

/** Returns where events of an object are: those of cluster-scoped ones in `default`, as the API server wants it. Pure. */
export function eventNamespace(involved: InvolvedObject): string {
  return involved.namespace ?? 'default';
}

/** Makes the name of an event of an object; `unique` as hexadecimal digits. Pure. */
export function eventName(involved: InvolvedObject, unique: string): string {
  return `${involved.name.slice(0, MOST_NAME_CHARS).replace(/[.-]+$/, '')}.${unique}`;
}

/** Makes an event of the core group. Pure. @see core/v1 Event */
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
    message: message.length > MOST_MESSAGE_CHARS ? `${message.slice(0, MOST_MESSAGE_CHARS - 1)}…` : message,
    source: { component, ...(host === undefined ? {} : { host }) },
    reportingComponent: component,
    reportingInstance: host ?? '',
    firstTimestamp: times.firstTime,
    lastTimestamp: times.lastTime,
    count: times.count,
  };
}
