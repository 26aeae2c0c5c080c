import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEventReason } from './event-reasons.ts';

/** Reports what happened on this node as Kubernetes events: short, seldom, and without waiting for the API server. */
export type NodeEvents = {
  report(type: 'Normal' | 'Warning', reason: NodeEventReason, message: string): void;
};

/** Drops every event: for an agent without a cluster. The log has the same text. */
export const NO_EVENTS: NodeEvents = { report: () => {} };

/** Longest message of an event, characters; below the API server's own limit. */
const MAX_MESSAGE_CHARS = 1000;

/** Records events about the Node named `nodeName`. As in kubelet's events, the Node's uid is its name. */
export function openNodeEvents(recorder: EventRecorder, nodeName: string, log: Logger): NodeEvents {
  const involved = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName };
  return {
    report: (type, reason, message) => {
      log.info('event', { type, reason, text: message });
      recorder.record({ involved, type, reason, message: message.slice(0, MAX_MESSAGE_CHARS) });
    },
  };
}
