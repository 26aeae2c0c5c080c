import { readFileSync } from 'node:fs';
import test from 'ava';
import { CONTROLLERS } from '../../cloud-controller-manager/term/controllers.ts';
import { seedClusterRole } from '../../sim/kube-api/seed-roles.ts';

const PAGE = readFileSync(new URL('../../docs/cloud-controller-manager.md', import.meta.url), 'utf8');
const SECTION = /^## Rights\n([\s\S]*?)^## /m.exec(PAGE)?.[1] ?? '';
/** Verbs that `*` stands for. */
const ALL_VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
/** Rights that the process has besides those of its controllers: for the default lock, and for events. */
const OF_THE_PROCESS = [
  ...['get', 'create', 'update'].map((verb) => `endpoints ${verb}`),
  ...['create', 'patch'].map((verb) => `events ${verb}`),
];

type Row = { readonly rights: readonly string[]; readonly use: string };

/** The rows of the table: `| \`nodes\` get, list | use |`. */
const ROWS: readonly Row[] = [...SECTION.matchAll(/^\| `([a-z/]+)` ([a-z, ]+) \| (.*) \|$/gm)].map(
  ([, resource = '', verbs = '', use = '']) => ({
    rights: verbs.split(', ').map((verb) => `${resource} ${verb}`),
    use,
  }),
);

/** What the code asks for or calls. */
function usedRights(): ReadonlySet<string> {
  const ofControllers = CONTROLLERS.flatMap(({ rights }) =>
    rights.map(({ verb, resource, subresource }) => `${[resource, subresource].filter(Boolean).join('/')} ${verb}`),
  );
  return new Set([...ofControllers, ...OF_THE_PROCESS]);
}

function publishedRights(): readonly string[] {
  const { rules } = seedClusterRole('tke-cloud-controller-manager') as unknown as {
    readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
  };
  return rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => (verbs.includes('*') ? ALL_VERBS : verbs).map((verb) => `${resource} ${verb}`)),
  );
}

test('docs/cloud-controller-manager.md: has each verb of the published role once, as used or with the reason why not', (t) => {
  t.true(ROWS.length > 5);
  t.deepEqual(ROWS.flatMap(({ rights }) => rights).sort(), [...publishedRights()].sort());
  for (const { rights, use } of ROWS)
    if (use.startsWith('not used')) t.regex(use, /^not used(: \w|\. \w)/, `${rights.join()}: the reason`);
});

test('docs/cloud-controller-manager.md: the verbs that it calls used are those that the code uses', (t) => {
  const used = ROWS.filter(({ use }) => !use.startsWith('not used')).flatMap(({ rights }) => rights);
  t.deepEqual(used.sort(), [...usedRights()].sort());
});
