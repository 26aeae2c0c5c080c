import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';
import type { BackendPort } from '../backends/backend-port.ts';

const PROTOCOLS: readonly BackendPort['protocol'][] = ['TCP', 'UDP', 'SCTP'];

/** Reads the ports of a Service of any type; accepts any shape, and leaves out what is no port. */
export function readPorts(service: KubeObject): readonly BackendPort[] {
  return recordsOf(recordOf(service['spec'])['ports']).flatMap(({ name, protocol, port, nodePort }) => {
    const its = PROTOCOLS.find((one) => one === (textOf(protocol) || 'TCP'));
    if (its === undefined || typeof port !== 'number') return [];
    const node = typeof nodePort === 'number' && nodePort > 0 ? { nodePort } : {};
    return [{ name: textOf(name), protocol: its, port, ...node }];
  });
}

/** Reads the ports of a Service that is a backend of rules; `external`: it is of type ExternalName, and has no backends. */
export function readBackendPorts(service: KubeObject): readonly BackendPort[] | 'external' {
  return recordOf(service['spec'])['type'] === 'ExternalName' ? 'external' : readPorts(service);
}
