/** A certificate for www.example.com until 2099, and its key: one that is recreated in each process would make another run. */
export const SITE_TLS = {
  cert: [
    '-----BEGIN CERTIFICATE-----',
    'MIIBxzCCAW2gAwIBAgIQdIh5iVw4YBVc/6JYMcoA8DAKBggqhkjOPQQDAjAaMRgw',
    'FgYDVQQDDA93d3cuZXhhbXBsZS5jb20wIBcNMDAwMTAxMDAwMDAwWhgPMjA5OTAx',
    'MDEwMDAwMDBaMBoxGDAWBgNVBAMMD3d3dy5leGFtcGxlLmNvbTBZMBMGByqGSM49',
    'AgEGCCqGSM49AwEHA0IABLlIOU7eKEoUdUwXnmTJUBoQoKlv4paijW+J/oiTjRwT',
    'Ewy1V06kTUJabOIeZZ5Gn1R5ZrKtrEKTnEpJVB/t7wajgZIwgY8wDAYDVR0TAQH/',
    'BAIwADAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwGgYDVR0R',
    'BBMwEYIPd3d3LmV4YW1wbGUuY29tMB0GA1UdDgQWBBQVTJ27XI/Ma85rgYvAX+ny',
    '98TY+jAfBgNVHSMEGDAWgBQVTJ27XI/Ma85rgYvAX+ny98TY+jAKBggqhkjOPQQD',
    'AgNIADBFAiA1LE9TKOh0Ii0h3/xjto73ab5tIwogxeP3KL+lQw/XQQIhALw9Hn4w',
    'uFGhuFgMHp86YlTxRVjRl0kNz3BXi6+tHUTJ',
    '-----END CERTIFICATE-----',
    '',
  ].join('\n'),
  key: [
    '-----BEGIN PRIVATE KEY-----',
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/fdmkrelxTBOnyEO',
    'KjTTFhcHRbTRObFEIjQMexB3VCahRANCAAS5SDlO3ihKFHVMF55kyVAaEKCpb+KW',
    'oo1vif6Ik40cExMMtVdOpE1CWmziHmWeRp9UeWayraxCk5xKSVQf7e8G',
    '-----END PRIVATE KEY-----',
    '',
  ].join('\n'),
} as const;
