import { finding } from '../../../../inspection/catalogue/catalogue.ts';
import type { Explanation, Hop } from '../../../../inspection/explain/explanation.ts';

const ok = (kind: Hop['kind'], title: string, ...details: readonly string[]): Hop => ({
  kind,
  element: `${kind}:x`,
  title,
  details,
  verdict: 'ok',
});

const MISSING = finding('rule-missing', {
  what: 'there is no IPv4 rule "1536: from all fwmark 0x10000/0xff0000 lookup 4003"',
  fix: ['tke-eni repair', 'ip rule add from all fwmark 0x10000/0xff0000 pref 1536 protocol 84 lookup 4003'],
  subjects: ['rule:4:1536:from all fwmark 0x10000/0xff0000'],
});

const NARROW = finding('mtu-mismatch', {
  what: 'default/web-0 sends packets of up to 1500 bytes, eni-1 (eth1) takes 1400',
  fix: ['tke-eni repair'],
  subjects: ['link:3'],
});

/** A Pod of which one packet ends at a missing rule and another arrives, with a warning and a hop that nobody could see. */
export const SAMPLE: Explanation = {
  subject: 'Pod default/web-0, eth0, 10.0.2.3 on eni-1 (eth1)',
  element: 'pod:0123/eth0',
  paths: [
    {
      direction: 'from-pod',
      from: '10.0.2.3 (Pod default/web-0)',
      to: '1.1.1.1',
      hops: [
        ok('pod', 'Pod default/web-0, eth0, 10.0.2.3', 'eth0: up, mtu 1500, mac 9a:09:54:60:b0:b5'),
        ok('nft', 'nftables table inet tke_eni gives mark 0x10000'),
        {
          kind: 'rule',
          element: 'rule:4:32766:from all',
          title: 'rule 32766: from all lookup main',
          details: [
            'packet: to 1.1.1.1 from 10.0.2.3, in by enif4f2cd6446e, mark 0x10000',
            'passed: rule 512: from all lookup 3999 (tke-pods): nothing for it in table 3999 (tke-pods)',
          ],
          verdict: 'broken',
          finding: MISSING,
        },
        ok(
          'route',
          'route default via 10.0.1.1 dev eth0 table main proto boot',
          'kernel: default via 10.0.1.1 dev eth0 table main proto boot',
          'asked: ip route get 1.1.1.1 from 10.0.2.3 iif enif4f2cd6446e mark 0x10000',
        ),
      ],
    },
    {
      direction: 'to-pod',
      from: '1.1.1.1',
      to: '10.0.2.3 (Pod default/web-0)',
      hops: [
        {
          kind: 'eni',
          element: 'eni:eni-1',
          title: 'ENI eni-1 (eth1)',
          details: ['eth1: up, mtu 1400, mac 20:90:6f:00:00:02, table 4003'],
          verdict: 'warning',
          finding: NARROW,
        },
        {
          kind: 'pod',
          element: 'pod:0123/eth0',
          title: 'Pod default/web-0, eth0, 10.0.2.3',
          details: ['not known: only root can look into Pods', 'next: run as root'],
          verdict: 'unknown',
        },
      ],
    },
  ],
  findings: [MISSING, NARROW],
};
