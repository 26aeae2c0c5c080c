import { NODE_ANNOTATION } from '../../../crd/names.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { isKubeError, type KubeError } from '../../../kube/kube-error.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { decodeNode, type NodeEntry } from '../../cache/node-entry.ts';

/** Value of the annotation that names the writer of a podCIDR. */
const POD_CIDR_WRITER = 'tke-eni-ipamd';

/** What became of the write of a podCIDR. */
export type WriteOutcome =
  | { readonly kind: 'written' }
  /** The Node has another podCIDR: ours was not written and never will be. `isOurs`: an ipamd wrote that one too. */
  | { readonly kind: 'other'; readonly podCidrs: readonly string[]; readonly isOurs: boolean }
  /** The Node is gone, or another registered under its name. */
  | { readonly kind: 'gone' }
  /** No write was accepted. */
  | { readonly kind: 'refused'; readonly error: KubeError }
  /** A write may have been accepted, or may still be. */
  | { readonly kind: 'uncertain'; readonly error: KubeError };

const ATTEMPTS = 3;

/**
 * Writes the podCIDR of a Node, once and for all: the API server lets it be set and never changed. Each attempt is
 * guarded by uid and resourceVersion of the Node as it was read last. Rejects only with the signal's reason.
 */
export async function writePodCidr(
  kube: KubeClient,
  node: { readonly name: string; readonly uid: string; readonly resourceVersion: string },
  cidr: string,
  signal: AbortSignal,
): Promise<WriteOutcome> {
  let { resourceVersion } = node;
  let isCertain = true;
  for (let attempt = 1; ; attempt++) {
    let failure: KubeError;
    try {
      const body = {
        metadata: { uid: node.uid, resourceVersion, annotations: { [NODE_ANNOTATION.podCidrBy]: POD_CIDR_WRITER } },
        spec: { podCIDR: cidr, podCIDRs: [cidr] },
      };
      // A JSON patch cannot add an annotation where it is not known whether the Node has any; this one is guarded alike.
      await kube.patch(NODES, { name: node.name }, { kind: 'merge', body }, signal);
      return { kind: 'written' };
    } catch (error) {
      if (!isKubeError(error)) throw error;
      failure = error;
    }
    isCertain &&= isRefusal(failure);
    const read = await readNode(kube, node.name, signal);
    if (read === 'unread') isCertain = false;
    else {
      if (read === undefined || read.metadata.uid !== node.uid) return { kind: 'gone' };
      const latest = decodeNode(read);
      if (latest.podCidrs.length > 0) return outcomeOf(latest, cidr);
      resourceVersion = latest.resourceVersion;
    }
    if (attempt >= ATTEMPTS) return { kind: isCertain ? 'refused' : 'uncertain', error: failure };
  }
}

function outcomeOf({ podCidrs, annotations }: NodeEntry, cidr: string): WriteOutcome {
  if (podCidrs.includes(cidr)) return { kind: 'written' };
  return { kind: 'other', podCidrs, isOurs: isWrittenByIpamd(annotations) };
}

/** Reports whether an ipamd wrote the podCIDR of a Node with these annotations. */
export function isWrittenByIpamd(annotations: NodeEntry['annotations']): boolean {
  return annotations[NODE_ANNOTATION.podCidrBy] === POD_CIDR_WRITER;
}

/** Reports whether the server has answered that it did not make the write. */
function isRefusal({ code }: KubeError): boolean {
  return code !== 'UNAVAILABLE' && code !== 'TIMEOUT' && code !== 'BAD_ANSWER';
}

async function readNode(
  kube: KubeClient,
  name: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined | 'unread'> {
  try {
    return await kube.get(NODES, { name }, signal);
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return 'unread';
  }
}
