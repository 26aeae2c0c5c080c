import test from 'ava';
import { buildEniRows, renderEnis } from '../../../../cli/commands/cluster/build-eni-rows.ts';
import { buildNodeRows } from '../../../../cli/commands/cluster/build-node-rows.ts';
import { buildStaticView, renderStaticView } from '../../../../cli/commands/cluster/build-static-view.ts';
import { buildSubnetRows, renderSubnets } from '../../../../cli/commands/cluster/build-subnet-rows.ts';
import { findLeaks, renderLeaks } from '../../../../cli/commands/cluster/find-leaks.ts';
import { type ClusterLayout, renderNodes } from '../../../../cli/commands/cluster/render-nodes.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { runCaptured } from '../../agent/captured.ts';
import { cloudEni, cloudOf, factsOf, KEPT_SAMPLE, SAMPLE } from './sample.ts';

const FACTS = factsOf(
  SAMPLE,
  cloudOf([
    cloudEni(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12']),
    cloudEni(2, ['10.0.2.10']),
    cloudEni(3, [], { attachment: { instanceId: 'ins-gone0000', deviceIndex: 2 } }),
  ]),
);
const VIEWS: Readonly<Record<string, (layout: ClusterLayout) => string>> = {
  nodes: (layout) => renderNodes(buildNodeRows(FACTS, 600_000), layout),
  subnets: (layout) => renderSubnets(buildSubnetRows(FACTS), layout),
  enis: (layout) => renderEnis(buildEniRows(FACTS), layout),
  kept: (layout) => renderStaticView(buildStaticView(factsOf(KEPT_SAMPLE)), layout),
  leaks: (layout) =>
    renderLeaks(findLeaks(FACTS, 600_000), { apartMs: 30_000, graceMs: 600_000, wasCloudAsked: true }, layout),
};

const COMMAND = ' '.repeat(11);

for (const [name, render] of Object.entries(VIEWS)) {
  for (const width of [80, 160]) {
    test(`cluster ${name}: fits ${width} columns`, (t) => {
      const text = render({ width, isColored: false });
      t.deepEqual(
        // Commands are never broken: they can be pasted.
        text.split('\n').filter((line) => line.length > width && !line.startsWith(COMMAND)),
        [],
      );
      matchesGolden(t, import.meta.url, `${name}-${width}.txt`, text);
    });
  }
  test(`cluster ${name}: colours change no column`, (t) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins each sequence.
    const plain = render({ width: 160, isColored: true }).replace(/\u001b\[[0-9;]*m/g, '');
    t.is(plain, render({ width: 160, isColored: false }));
  });
}

const ODD: readonly (readonly [string, RegExp])[] = [
  ['cluster leaks --sample -1 --grace -2', /--sample: expected seconds, 0 or more, got -1; --grace: .*-2/],
  ['cluster nodes --cloud', /--cloud: the view nodes does not use/],
  ['cluster kept --cloud', /--cloud: the view kept does not use/],
  ['cluster enis --sample 5', /--sample: the view enis reads once/],
  ['cluster pods', /pods/],
];

for (const [line, said] of ODD) {
  test(`tke-eni ${line}: is refused before anybody is asked`, async (t) => {
    const { code, stdout, stderr } = await runCaptured([...line.split(' '), '--kubeconfig', '/nonexistent']);
    t.is(code, 64);
    t.is(stdout, '');
    t.regex(stderr, said);
  });
}

test('tke-eni cluster: says which kubeconfig leads nowhere', async (t) => {
  const { code, stderr } = await runCaptured(['cluster', '--kubeconfig', '/nonexistent']);
  t.is(code, 2);
  t.regex(stderr, /\/nonexistent/);
});
