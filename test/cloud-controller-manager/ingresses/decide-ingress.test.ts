import test from 'ava';
import {
  decideIngress,
  INGRESS_CLASS_ANNOTATION,
  INGRESS_CONTROLLER,
} from '../../../cloud-controller-manager/ingresses/decide-ingress.ts';
import { readIngressHead } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import { INGRESS_FINALIZER } from '../../../crd/names.ts';

type Class = { readonly annotation?: string; readonly name?: string };
type Row = readonly [its: Class, isLeaving: boolean, hasFinalizer: boolean, role: 'serve' | 'release' | 'ignore'];

const NONE: Class = {};
const ANNOTATED: Class = { annotation: 'qcloud' };
const ANNOTATED_OTHER: Class = { annotation: 'nginx', name: 'ours' };
const OURS: Class = { name: 'ours' };
const OTHER: Class = { name: 'other' };
const MISSING: Class = { name: 'missing' };

const ROWS: readonly Row[] = [
  [ANNOTATED, false, false, 'serve'],
  [OURS, false, true, 'serve'],
  [{ annotation: '', name: 'ours' }, false, false, 'serve'],
  [OURS, true, true, 'release'],
  [OURS, true, false, 'ignore'],
  [OTHER, false, false, 'ignore'],
  [OTHER, false, true, 'release'],
  [ANNOTATED_OTHER, false, false, 'ignore'],
  [ANNOTATED_OTHER, false, true, 'release'],
  [MISSING, false, true, 'ignore'],
  [MISSING, true, true, 'release'],
  [NONE, false, false, 'ignore'],
  [NONE, false, true, 'ignore'],
  [NONE, true, true, 'release'],
];

const controllerOf = (name: string): string | undefined =>
  ({ ours: INGRESS_CONTROLLER, other: 'k8s.io/ingress-nginx' })[name];

function headOf({ annotation, name }: Class, isLeaving = false, hasFinalizer = false) {
  const metadata = {
    name: 'a',
    ...(annotation === undefined ? {} : { annotations: { [INGRESS_CLASS_ANNOTATION]: annotation } }),
    ...(isLeaving ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    finalizers: hasFinalizer ? [INGRESS_FINALIZER] : [],
  };
  const spec = name === undefined ? {} : { ingressClassName: name };
  return readIngressHead({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec });
}

for (const [its, isLeaving, hasFinalizer, role] of ROWS) {
  const words = [JSON.stringify(its), isLeaving && 'leaving', hasFinalizer && 'finalizer'];
  test(`${words.filter(Boolean).join(', ')}: ${role}`, (t) => {
    const head = headOf(its, isLeaving, hasFinalizer);
    t.is(decideIngress(head, { controllerOf, servesWithoutClass: false }).role, role);
  });
}

test('without a class, by the flag', (t) => {
  t.is(decideIngress(headOf(NONE), { controllerOf, servesWithoutClass: true }).role, 'serve');
});

test('a class that does not exist is named, and what a controller would have to be', (t) => {
  const { notice } = decideIngress(headOf(MISSING), { controllerOf, servesWithoutClass: false });
  t.is(notice?.reason, 'IngressRefused');
  t.regex(notice?.message ?? '', /"missing": there is no such IngressClass.*networking\.tke\.cloud\.tencent\.com\/clb/);
  t.is(decideIngress(headOf(OTHER), { controllerOf, servesWithoutClass: false }).notice, undefined);
});
