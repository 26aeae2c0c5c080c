// Every point of the stories of load balancers at which a death of their leader may spoil them, and every request that may be lost.
import test from 'ava';
import { crashAtEach, loseEach } from './crash.ts';
import { ingressGroup, ingressLife } from './stories/ingresses.ts';
import { podTargets, serviceLife, settledService, sourceRanges } from './stories/services.ts';

for (const [name, { story, every }] of Object.entries({
  serviceLife: { story: serviceLife, every: 1 },
  podTargets: { story: podTargets, every: 2 },
  sourceRanges: { story: sourceRanges, every: 1 },
  settledService: { story: settledService, every: 1 },
  ingressLife: { story: ingressLife, every: 4 },
  ingressGroup: { story: ingressGroup, every: 1 },
})) {
  test.serial(`${name}: also when the leader dies at any point`, crashAtEach(story, { program: 'ccm', every }));
  test.serial(`${name}: also when any request is lost, late or astray`, loseEach(story, { program: 'ccm', every }));
}
