// Some of the points at which a program may die, and of the requests that may be lost; the suite long has many more. One file: what
// each process compiles again takes as long as a dozen of these runs.
import test from 'ava';
import { crashAtEach, loseEach } from './crash.ts';
import { onePod } from './stories/agents.ts';
import { tableRoutes } from './stories/ccm-routes.ts';
import { cloudNodes } from './stories/cloud-nodes.ts';
import { ingressGroup, ingressLife } from './stories/ingresses.ts';
import { keptEni } from './stories/owned.ts';
import { keptAddress, podCidrs } from './stories/pods.ts';
import { podTargets, serviceLife, settledService, sourceRanges } from './stories/services.ts';
import { warmAndBack } from './stories/supply.ts';

const ofCcm = { program: 'ccm' } as const;

for (const [title, tries] of [
  ['addresses come and go also when the leader dies anywhere', crashAtEach(warmAndBack, { every: 41 })],
  ['addresses come and go also when a request is lost, late or astray', loseEach(warmAndBack, { every: 41 })],
  ['an address that is kept moves also when the leader dies anywhere', crashAtEach(keptAddress, { every: 127 })],
  ['blocks and routes are right also when the leader dies anywhere', crashAtEach(podCidrs, { every: 53 })],
  ['an ENI that is kept moves also when the leader dies anywhere', crashAtEach(keptEni, { every: 277 })],
  ['a Pod comes and goes also when its agent dies anywhere', crashAtEach(onePod, { program: 'agent', every: 5 })],
  ['a Service is served also when the leader dies anywhere', crashAtEach(serviceLife, { ...ofCcm, every: 13 })],
  ['a Service is served also when a request is lost, late or astray', loseEach(serviceLife, { ...ofCcm, every: 31 })],
  ['Pods are targets also when the leader dies anywhere', crashAtEach(podTargets, { ...ofCcm, every: 41 })],
  ['a Service stays closed also when the leader dies anywhere', crashAtEach(sourceRanges, { ...ofCcm, every: 23 })],
  ['nothing is settled that is not, wherever the leader dies', crashAtEach(settledService, { ...ofCcm, every: 13 })],
  ['an Ingress is served also when the leader dies anywhere', crashAtEach(ingressLife, { ...ofCcm, every: 97 })],
  ['a group has its rules also when the leader dies anywhere', crashAtEach(ingressGroup, { ...ofCcm, every: 29 })],
  [
    'Nodes are what their instances are also when the leader dies anywhere',
    crashAtEach(cloudNodes, { ...ofCcm, every: 13 }),
  ],
  ['routes are those of Nodes also when the leader dies anywhere', crashAtEach(tableRoutes, { ...ofCcm, every: 13 })],
] as const)
  test.serial(title, tries);
