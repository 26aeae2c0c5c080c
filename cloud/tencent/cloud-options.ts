import { option, type SettingsOf } from '../../runtime/settings/option.ts';
import { choiceValue, pathValue, wholeNumberValue } from '../../runtime/settings/option-value.ts';
import { isEmpty, refused } from '../../runtime/settings/rule.ts';
import { endpointsValue, httpUrlValue, regionValue, roleArnValue } from './cloud-option-value.ts';

const MAX_CALLS_PER_SECOND = 10_000;

/** Settings of the connection to the cloud, of every program that calls it. */
export const CLOUD_OPTIONS = {
  region: option(
    'Cluster and cloud',
    'region',
    regionValue,
    '',
    "Region of the VPC; '' asks the metadata service of the instance that this runs on.",
  ),
  endpoints: option(
    'Cluster and cloud',
    'endpoint',
    endpointsValue,
    '*.tencentcloudapi.com',
    "Where the cloud's API is: *.DOMAIN for hosts such as vpc.DOMAIN, HOST[:PORT] for one host of all products, PRODUCT=HOST[:PORT] for one of vpc, cvm, clb, sts. Inside a VPC without internet: *.internal.tencentcloudapi.com.",
  ),
  protocol: option(
    'Cluster and cloud',
    'protocol',
    choiceValue('https', 'http'),
    'https',
    "Protocol of the cloud's API. http is for tests only: calls are signed, answers are not.",
  ),
  credentials: option(
    'Cluster and cloud',
    'credentials',
    choiceValue('auto', 'env', 'file', 'role', 'oidc'),
    'auto',
    "Where the key comes from. env: TENCENTCLOUD_SECRET_ID, _SECRET_KEY, _SESSION_TOKEN; file: --credentials-file; role: the instance's role; oidc: the ServiceAccount's role (TKE_* variables); auto: the first of oidc, file, env, role that gives one.",
  ),
  credentialsFile: option(
    'Cluster and cloud',
    'credentials-file',
    pathValue(true),
    '',
    'File with the key: JSON with secretId, secretKey, token, or lines such as secret_id = …. Read again when it changes.',
  ),
  stsRoleArn: option(
    'Cluster and cloud',
    'sts-role-arn',
    roleArnValue,
    '',
    "Role to take on with that key, by STS AssumeRole; '' to sign with the key itself.",
  ),
  metadataUrl: option(
    'Cluster and cloud',
    'metadata-url',
    httpUrlValue,
    'http://metadata.tencentyun.com/latest/meta-data',
    'Metadata service of the instance: for the region, and for --credentials=role.',
  ),
  productQps: option(
    'Cluster and cloud',
    'product-qps',
    wholeNumberValue(1, MAX_CALLS_PER_SECOND),
    '50',
    "Most calls a second of one product (VPC, CVM, CLB). 50 is what the product's components hold to; a single API may be slower, as the cloud lets it.",
  ),
} as const;

/** The settings of the connection to the cloud. */
export type CloudSettings = SettingsOf<typeof CLOUD_OPTIONS>;

/** A key that is to come from a file that is not named is refused. */
export const CLOUD_RULE = refused(
  'credentials-file',
  'a file, as --credentials=file wants one',
  { flag: 'credentials', is: ['file'] },
  isEmpty('credentials-file'),
);
