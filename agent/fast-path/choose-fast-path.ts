/** What the node's owner asks for by `--fast-path`. */
export type WantedFastPath = 'off' | 'bpf' | 'auto';

/** What was found on the node. */
export type FastPathFindings = {
  readonly role: 'full' | 'uplinks';
  /** The configuration that chains cilium-cni after our plugin; undefined without one. */
  readonly ciliumChain: string | undefined;
  readonly hasNftables: boolean;
  /** Whether the kernel has the setting nf_conntrack_tcp_be_liberal, which comes with connection tracking. */
  readonly hasBeLiberal: boolean;
  /** Why the kernel does not take the programs; undefined when it took them. */
  readonly programProblem: string | undefined;
};

/** What the agent does, and why in a sentence for people. */
export type FastPathChoice = {
  readonly wanted: WantedFastPath;
  readonly mode: 'off' | 'bpf';
  /** '' where it is as wanted. */
  readonly why: string;
};

/** Chooses the fast path. What cannot be had is no error: packets take the way of the kernel. */
export function chooseFastPath(wanted: WantedFastPath, findings: FastPathFindings): FastPathChoice {
  if (wanted === 'off') return { wanted, mode: 'off', why: '' };
  const problem = problemOf(findings);
  return problem === undefined ? { wanted, mode: 'bpf', why: '' } : { wanted, mode: 'off', why: problem };
}

/** Why programs are not to be loaded; undefined when they may be. Asked before they are, and once more after it. */
export function problemOf(findings: FastPathFindings): string | undefined {
  const { role, ciliumChain, hasNftables, hasBeLiberal, programProblem } = findings;
  if (role === 'uplinks') return 'with --role=uplinks another program has the links of Pods';
  if (ciliumChain !== undefined)
    return `cilium-cni is chained (${ciliumChain}), and has programs of its own on the links of Pods`;
  if (!hasNftables) return 'nftables does not work here, and marks what may be learned';
  if (!hasBeLiberal) return 'the kernel has no net.netfilter.nf_conntrack_tcp_be_liberal: load nf_conntrack';
  return programProblem;
}
