import { FlowMapError, readFlows } from '../../dataplane/fast-path/flow-maps.ts';
import { LibcError } from '../../netlink/errno.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import { NetnsError, openNetns } from '../../netlink/netns.ts';
import { openRtnetlink, openRtnetlinkIn, type Rtnetlink } from '../../netlink/rtnetlink.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { ifKnown, known, unknown } from '../node/known.ts';
import type { NodeFacts } from '../node/node-facts.ts';
import type { NodeContext } from '../node/read-node-facts.ts';
import { withNodeNetns } from '../node/with-node-netns.ts';
import { queryOf } from './flow.ts';
import type { KernelAnswer, KernelLookup, ReadFollowedFlows } from './kernel-answer.ts';

/** Connections for route lookups in the kernel, and the reader of the fast path's flows. */
type KernelLookupClient = {
  readonly lookup: KernelLookup;
  readonly readFlows: ReadFollowedFlows;
  close(): void;
  [Symbol.dispose](): void;
};

/**
 * Opens the kernel's route lookup in the node's namespace and in those of Pods. Each connection opens at its first use,
 * and flows are read once. The caller closes it.
 */
export function openKernelLookup({ global }: NodeContext, facts: Pick<NodeFacts, 'pods'>): KernelLookupClient {
  const connections = new Map<string | undefined, Rtnetlink | string>();
  const open = (podKey: string | undefined): Rtnetlink | string => {
    if (podKey === undefined) {
      return withNodeNetns(global, (netns) => (netns === undefined ? openRtnetlink() : openRtnetlinkIn(netns)));
    }
    const lease = facts.pods.find(({ key }) => key === podKey)?.lease;
    const path = lease === undefined ? undefined : ifKnown(lease)?.netns;
    if (path === undefined || path === '') return 'the namespace of the Pod is not recorded';
    try {
      using netns = openNetns(resolveHostPath(global.hostRoot, path));
      return openRtnetlinkIn(netns);
    } catch (error) {
      if (error instanceof NetnsError || error instanceof LibcError) return error.message;
      throw error;
    }
  };
  const close = () => {
    for (const connection of connections.values()) if (typeof connection !== 'string') connection.close();
    connections.clear();
  };
  const flows = new Map<number, ReturnType<ReadFollowedFlows>>();
  return {
    readFlows: (programId) => {
      const found = flows.get(programId) ?? followedFlows(programId);
      flows.set(programId, found);
      return found;
    },
    lookup: (podKey, flow, fibmatch) => {
      const connection = connections.get(podKey) ?? open(podKey);
      connections.set(podKey, connection);
      return typeof connection === 'string' ? { kind: 'unknown', why: connection } : answer(connection, flow, fibmatch);
    },
    close,
    [Symbol.dispose]: close,
  };
}

/** Errors that are an answer. Any other error means that the query was wrong or came too early. */
const REFUSALS = ['ENETUNREACH', 'EHOSTUNREACH', 'EACCES', 'EINVAL', 'EXDEV', 'ENETDOWN'];

function answer(connection: Rtnetlink, flow: Parameters<KernelLookup>[1], fibmatch: boolean): KernelAnswer {
  try {
    return { kind: 'route', route: connection.route.get(queryOf(flow, fibmatch)) };
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    return REFUSALS.includes(error.code)
      ? { kind: 'refused', code: error.code }
      : { kind: 'unknown', why: error.message };
  }
}

/** Identifiers of programs are those of the machine, in each namespace. */
function followedFlows(programId: number): ReturnType<ReadFollowedFlows> {
  try {
    const flows = readFlows(programId);
    return known({ flows, nowNs: process.hrtime.bigint() });
  } catch (error) {
    if (!(error instanceof FlowMapError)) throw error;
    return unknown(error.message, error.code === 'EPERM' ? 'run as root' : 'tke-eni status');
  }
}
