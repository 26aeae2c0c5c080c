/** Whether the agent masquerades packets of GlobalRoute Pods, and why. */
export type MasqueradeChoice = { readonly isOn: boolean; readonly why: string };

/** Facts that decide for `--gr-masquerade=auto`; undefined: not known. */
type MasqueradeEvidence = {
  /** Chains of the nat table that ip-masq-agent made. */
  readonly chains: readonly string[] | undefined;
  /** Name of the ConfigMap of ip-masq-agent; '' when there is none. */
  readonly configMap: string | undefined;
};

/**
 * Decides whether the agent masquerades. Two programs that do it would not agree on the exceptions, so ip-masq-agent goes
 * first: its rules in the kernel, then its ConfigMap. Where neither could be read nothing is masqueraded: addresses of
 * Pods that are translated by mistake are worse than packets that the VPC does not route.
 */
export function decideMasquerade(
  configured: 'auto' | 'true' | 'false',
  { chains, configMap }: MasqueradeEvidence,
): MasqueradeChoice {
  if (configured !== 'auto') return { isOn: configured === 'true', why: `--gr-masquerade=${configured}` };
  const [chain] = chains ?? [];
  if (chain !== undefined) return { isOn: false, why: `ip-masq-agent has the chain ${chain} in the nat table` };
  if (configMap !== undefined && configMap !== '') {
    return { isOn: false, why: `ip-masq-agent has the ConfigMap ${configMap}` };
  }
  if (chains === undefined && configMap === undefined) {
    return { isOn: false, why: 'neither the nat table nor the ConfigMap of ip-masq-agent could be read' };
  }
  return { isOn: true, why: 'there is no ip-masq-agent' };
}
