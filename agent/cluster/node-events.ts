import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEventReason } from './event-reasons.ts';

/** Tells people what happened on this node: short, seldom, and never in the way of anything. */
export type NodeEvents = {
  tell(type: 'Normal' | 'Warning', reason: NodeEventReason, message: string): void;
};

/** Drops every event: where there is no cluster; the log has it too. */
export const NO_EVENTS: NodeEvents = { tell: () => {} };

/** Events carry this much at most, as the API server has it. */
const MOST_CHARS = 1000;

/** Tells events about the Node named `nodeName`. Its uid in events is its name, as the kubelet has it. */
export function openNodeEvents(recorder: EventRecorder, nodeName: string, log: Logger): NodeEvents {
  const involved = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName };
  return {
    tell: (type, reason, message) => {
      log.info('event', { type, reason, text: message });
      recorder.record({ involved, type, reason, message: message.slice(0, MOST_CHARS) });
    },
  };
}
