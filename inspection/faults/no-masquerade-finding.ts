import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';

/** Says that no program masquerades packets of GlobalRoute Pods. @param why as the agent says it; '' where it is not known */
export function noMasqueradeFinding(why = ''): Finding {
  return finding('gr-masquerade', {
    what: `no program masquerades what GlobalRoute Pods send to outside of the VPC${why === '' ? '' : ` (${why})`}`,
    fix: ['tke-eni status', 'iptables -t nat -S', 'run ip-masq-agent, or the agent with --gr-masquerade=auto'],
    subjects: [`nft:${NFT_TABLE}`],
    // Who says so with the flag wants it.
    ...(why.startsWith('--gr-masquerade=') && { severity: 'info' }),
  });
}
