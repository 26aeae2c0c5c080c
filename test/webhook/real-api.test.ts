import test from 'ava';
import { startRealApi } from '../kube-api/real-api.ts';
import { testAskedBy } from './asked-cases.ts';

const assets = process.env['KUBE_ASSETS'];

if (assets === undefined) {
  test.skip('a real kube-apiserver: asks the webhook (set KUBE_ASSETS to a folder with one)', () => {});
} else await testAskedBy('a real kube-apiserver', () => startRealApi(assets));
