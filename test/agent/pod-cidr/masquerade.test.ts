import test from 'ava';
import { masqChainsOf } from '../../../agent/bridge/masq-chains.ts';
import { decideMasquerade } from '../../../agent/pod-cidr/masquerade.ts';
import { masqueradeExempt } from '../../../dataplane/masquerade-exempt.ts';

const NONE = { chains: [], configMap: '' };
for (const [what, configured, evidence, isOn, why] of [
  ['no ip-masq-agent', 'auto', NONE, true, /no ip-masq-agent/],
  ['its chain', 'auto', { chains: ['IP-MASQ-AGENT'], configMap: '' }, false, /chain IP-MASQ-AGENT/],
  ['its chain, without a cluster', 'auto', { chains: ['IP-MASQ'], configMap: undefined }, false, /chain IP-MASQ/],
  [
    'its ConfigMap',
    'auto',
    { chains: [], configMap: 'kube-system/ip-masq-agent-config' },
    false,
    /ip-masq-agent-config/,
  ],
  ['its ConfigMap, no tool', 'auto', { chains: undefined, configMap: 'kube-system/ip-masq-agent' }, false, /ConfigMap/],
  ['nothing readable', 'auto', { chains: undefined, configMap: undefined }, false, /could be read/],
  ['chains unknown, no ConfigMap', 'auto', { chains: undefined, configMap: '' }, true, /no ip-masq-agent/],
  ['the flag true', 'true', { chains: ['IP-MASQ-AGENT'], configMap: undefined }, true, /--gr-masquerade=true/],
  ['the flag false', 'false', NONE, false, /--gr-masquerade=false/],
] as const) {
  test(`decideMasquerade: ${what}: ${isOn ? 'on' : 'off'}`, (t) => {
    const choice = decideMasquerade(configured, evidence);
    t.is(choice.isOn, isOn);
    t.regex(choice.why, why);
  });
}

test('masqueradeExempt: the VPC is exempt, also where it is no private range', (t) => {
  const exempt = masqueradeExempt(['9.0.0.0/16']);
  for (const cidr of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '9.0.0.0/16'])
    t.true(exempt.includes(cidr), cidr);
});

const NFT = `table ip nat {
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
	}
	chain IP-MASQ-AGENT {
	}
}
`;
const LEGACY = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-POSTROUTING - [0:0]
:IP-MASQ - [0:0]
-A POSTROUTING -j IP-MASQ
COMMIT
`;
test('masqChainsOf: finds the chains in the lists of both backends', (t) => {
  t.deepEqual(masqChainsOf(NFT), ['IP-MASQ-AGENT']);
  t.deepEqual(masqChainsOf(LEGACY), ['IP-MASQ']);
  t.deepEqual(masqChainsOf(NFT.replaceAll('IP-MASQ-AGENT', 'KUBE-POSTROUTING')), []);
});
