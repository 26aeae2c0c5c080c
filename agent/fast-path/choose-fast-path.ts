/** What the node's owner asks for by `--fast-path`. */
export type WantedFastPath = 'off' | 'flowtable' | 'bpf' | 'auto';

/** What was found on the node. */
export type FastPathFindings = {
  readonly role: 'full' | 'uplinks';
  /** The configuration that chains cilium-cni after our plugin; undefined without one. */
  readonly ciliumChain: string | undefined;
  readonly hasNftables: boolean;
  /** Whether the kernel has the setting nf_conntrack_tcp_be_liberal, which comes with connection tracking. */
  readonly hasBeLiberal: boolean;
  /** Why the kernel does not take the programs, or the flowtable; undefined when it took what was tried. */
  readonly problem: string | undefined;
};

/** What the agent does, and why in a sentence for people. */
export type FastPathChoice = {
  readonly wanted: WantedFastPath;
  readonly mode: 'off' | 'flowtable' | 'bpf';
  /** '' where it is as wanted. */
  readonly why: string;
};

/**
 * Chooses the fast path. What cannot be had is no error: packets take the way of the kernel. A flowtable is had by its name only,
 * and never instead of the programs, or they instead of it: what ends a flow differs.
 */
export function chooseFastPath(wanted: WantedFastPath, findings: FastPathFindings): FastPathChoice {
  if (wanted === 'off') return { wanted, mode: 'off', why: '' };
  const problem = problemOf(findings);
  if (problem !== undefined) return { wanted, mode: 'off', why: problem };
  return { wanted, mode: wanted === 'flowtable' ? 'flowtable' : 'bpf', why: '' };
}

/** Why nothing is to be tried; undefined when it may be. Asked before it is, and once more after it. */
export function problemOf(findings: FastPathFindings): string | undefined {
  const { role, ciliumChain, hasNftables, hasBeLiberal, problem } = findings;
  if (role === 'uplinks') return 'with --role=uplinks another program has the links of Pods';
  if (ciliumChain !== undefined)
    return `cilium-cni is chained (${ciliumChain}), and has programs of its own on the links of Pods`;
  if (!hasNftables) return 'nftables does not work here, and decides what may be learned';
  if (!hasBeLiberal) return 'the kernel has no net.netfilter.nf_conntrack_tcp_be_liberal: load nf_conntrack';
  return problem;
}
