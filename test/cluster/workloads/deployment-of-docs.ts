import { BUSYBOX_IMAGE } from '../small-images.ts';
import { ECHO_SERVER } from './echo.ts';

/** Selects its Pods. */
export const LABEL_OF_DOCS = 'k8s-app=nginx-deploy';

/**
 * Makes the Deployment that TKE's documents show for a hybrid cluster: annotation and resource as printed there, and all
 * its other fields; only image, pull policy and command are ours.
 * @see https://cloud.tencent.com/document/product/457/50356
 */
export function deploymentOfDocs(replicas: number): string {
  const labels = { 'k8s-app': 'nginx-deploy', 'qcloud-app': 'nginx-deploy' };
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { labels, name: 'nginx-deploy', namespace: 'default' },
    spec: {
      progressDeadlineSeconds: 600,
      replicas,
      revisionHistoryLimit: 10,
      selector: { matchLabels: labels },
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }, type: 'RollingUpdate' },
      template: {
        metadata: { annotations: { 'tke.cloud.tencent.com/networks': 'tke-route-eni' }, labels },
        spec: {
          containers: [
            {
              image: BUSYBOX_IMAGE,
              imagePullPolicy: 'Never',
              command: ECHO_SERVER.command,
              name: 'nginx-deploy',
              resources: {
                limits: { cpu: '500m', memory: '1Gi', 'tke.cloud.tencent.com/eni-ip': '1' },
                // The document asks for 250m and 256Mi; nodes of the tests share one machine.
                requests: { cpu: '20m', memory: '64Mi', 'tke.cloud.tencent.com/eni-ip': '1' },
              },
              securityContext: { privileged: false },
              terminationMessagePath: '/dev/termination-log',
              terminationMessagePolicy: 'File',
            },
          ],
          // The kubelet falls back to that of the node: it knows of no DNS in the cluster.
          dnsPolicy: 'ClusterFirst',
          imagePullSecrets: [{ name: 'qcloudregistrykey' }],
          restartPolicy: 'Always',
          schedulerName: 'default-scheduler',
          securityContext: {},
          terminationGracePeriodSeconds: 1,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: labels },
            },
          ],
        },
      },
    },
  });
}
