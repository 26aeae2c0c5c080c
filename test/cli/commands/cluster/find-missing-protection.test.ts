import test from 'ava';
import { readMissingProtection } from '../../../../cli/commands/cluster/read-protection.ts';
import type { KubeObject, ListPage } from '../../../../kube/kube-client.ts';
import { KubeError, type KubeErrorCode } from '../../../../kube/kube-error.ts';

const NAME = 'tke-eni-agent-own-node-only';
const POLICIES = 'validatingadmissionpolicies';
const BINDINGS = 'validatingadmissionpolicybindings';
const PODS = 'pods';

const POLICY = { metadata: { name: NAME }, spec: { failurePolicy: 'Fail' } };
const BINDING = { metadata: { name: NAME }, spec: { policyName: NAME, validationActions: ['Deny', 'Audit'] } };
const agentOf = (name: string, securityContext: object) => ({
  metadata: { name, namespace: 'kube-system' },
  spec: { containers: [{ name: 'agent', securityContext }] },
});
const LEAST = agentOf('tke-eni-agent-a', { privileged: false, capabilities: { drop: ['ALL'] } });
const PRIVILEGED = agentOf('tke-eni-agent-b', { privileged: true });

type Served = Readonly<Record<string, readonly object[] | KubeErrorCode>>;
const WHOLE: Served = { [POLICIES]: [POLICY], [BINDINGS]: [BINDING], [PODS]: [LEAST] };

/** What is said of a cluster that serves these lists. */
async function missingOf(served: Served): Promise<readonly string[]> {
  const listPage = async ({ plural }: { readonly plural: string }): Promise<ListPage> => {
    const items = served[plural] ?? [];
    if (typeof items === 'string') throw new KubeError({ code: items, request: `LIST ${plural}`, text: 'refused' });
    return { items: items as readonly KubeObject[], resourceVersion: '1' };
  };
  return readMissingProtection({ listPage }, new AbortController().signal);
}

const CASES: readonly (readonly [title: string, served: Served, said: readonly RegExp[]])[] = [
  ['nothing where both are there', WHOLE, []],
  ['nothing where the server has no such policies', { [POLICIES]: 'NOT_FOUND', [BINDINGS]: 'NOT_FOUND' }, []],
  [
    'the policy',
    { ...WHOLE, [POLICIES]: [] },
    [/write the objects of every node.*agent-own-node-only.*agent\.ownNodeOnly/s],
  ],
  ['its binding', { ...WHOLE, [BINDINGS]: [] }, [/agent-own-node-only/]],
  [
    'a binding that only records',
    { ...WHOLE, [BINDINGS]: [{ ...BINDING, spec: { policyName: NAME, validationActions: ['Audit'] } }] },
    [/agent-own-node-only/],
  ],
  [
    'an agent that is privileged',
    { ...WHOLE, [PODS]: [LEAST, PRIVILEGED] },
    [/tke-eni-agent-b.*privileged.*leastPrivilege/s],
  ],
  [
    'both',
    { [POLICIES]: [], [BINDINGS]: [], [PODS]: [PRIVILEGED] },
    [/agent-own-node-only/, /tke-eni-agent-b.*privileged/],
  ],
  [
    'a right of the viewer that is missing',
    { ...WHOLE, [POLICIES]: 'FORBIDDEN' },
    [/may not list validatingadmissionpolicies.*tke-eni-viewer/],
  ],
  ['nothing of Pods that may not be listed, which the view says itself', { ...WHOLE, [PODS]: 'FORBIDDEN' }, []],
];

for (const [title, served, said] of CASES) {
  test(`readMissingProtection: names ${title}`, async (t) => {
    const texts = await missingOf(served);
    t.is(texts.length, said.length, texts.join('\n'));
    said.forEach((words, index) => {
      t.regex(texts[index] ?? '', words);
    });
  });
}

test('readMissingProtection: leaves it out when the server fails, as the view says that itself', async (t) => {
  t.deepEqual(await missingOf({ ...WHOLE, [BINDINGS]: 'UNAVAILABLE' }), []);
});
