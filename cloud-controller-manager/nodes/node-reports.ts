import type { Logger } from '../../runtime/log.ts';
import type { CcmEvents } from '../events/event-reasons.ts';
import type { CloudNode } from './cloud-node.ts';

/** What is wrong with a Node. */
type NodeProblem = {
  readonly reason: 'InstanceUnknown' | 'InstanceTaken' | 'AddressInvalid' | 'CloudRefused' | 'NodeDeletionHeld';
  readonly message: string;
};

/** Reports what is wrong with Nodes, as an event and in the log, once for each change. */
export class NodeReports {
  readonly #events: CcmEvents;
  readonly #log: Logger;
  readonly #reported = new Map<string, string>();

  constructor(events: CcmEvents, log: Logger) {
    this.#events = events;
    this.#log = log;
  }

  /** Reports the problem of a Node; undefined: there is none any more. */
  report({ name, uid }: Pick<CloudNode, 'name' | 'uid'>, problem: NodeProblem | undefined): void {
    if (problem === undefined) {
      this.#reported.delete(name);
      return;
    }
    const text = JSON.stringify([uid, problem]);
    if (this.#reported.get(name) === text) return;
    this.#reported.set(name, text);
    this.#log.warn('a Node has a problem', { node: name, ...problem });
    const involved = { apiVersion: 'v1', kind: 'Node', name, ...(uid === '' ? {} : { uid }) };
    this.#events.record({ involved, type: 'Warning', ...problem });
  }

  forget(name: string): void {
    this.#reported.delete(name);
  }
}
