/** Events of the same cell, by name. Written, as is all of this file, by test/http/interface-document.test.ts. */
export const EVENT_EXAMPLES: Readonly<Record<string, unknown>> = {
  "ProgramStarted": {
    "event_id": "019c13ec-c510-7020-8000-000000000020",
    "event_name": "ProgramStarted",
    "timestamp": "2026-01-31T12:00:10.000000Z",
    "schema_version": 3,
    "service_version": "1.2.3-test",
    "kiosk_serial_number": "K-7",
    "data": {
      "run_id": "019c13ec-c510-7002-8000-000000000002",
      "program_id": "019c13ec-a1e8-7001-8000-000000000001",
      "program_name": "Housing top",
      "robot_id": "r1",
      "serial_number": "SN-0042",
      "revision": 1,
      "status": "running",
      "quality_status": null,
      "created_at": "2026-01-31T12:00:10.000000Z",
      "updated_at": "2026-01-31T12:00:10.000000Z",
      "started_at": "2026-01-31T12:00:10.000000Z",
      "completed_at": null
    }
  },
  "ProgramFailed": {
    "event_id": "019c13ec-d0c8-7020-8000-000000000020",
    "event_name": "ProgramFailed",
    "timestamp": "2026-01-31T12:00:13.000000Z",
    "schema_version": 3,
    "service_version": "1.2.3-test",
    "kiosk_serial_number": "K-7",
    "data": {
      "run_id": "019c13ec-c510-7002-8000-000000000002",
      "program_id": "019c13ec-a1e8-7001-8000-000000000001",
      "program_name": "Housing top",
      "robot_id": "r1",
      "serial_number": "SN-0042",
      "revision": 1,
      "status": "failed",
      "quality_status": null,
      "created_at": "2026-01-31T12:00:10.000000Z",
      "updated_at": "2026-01-31T12:00:13.000000Z",
      "started_at": "2026-01-31T12:00:10.000000Z",
      "completed_at": "2026-01-31T12:00:13.000000Z",
      "error_message": "protective stop of r1"
    }
  },
  "ProgramCancelled": {
    "event_id": "019c13ec-d4b0-7020-8000-000000000020",
    "event_name": "ProgramCancelled",
    "timestamp": "2026-01-31T12:00:14.000000Z",
    "schema_version": 3,
    "service_version": "1.2.3-test",
    "kiosk_serial_number": "K-7",
    "data": {
      "run_id": "019c13ec-c510-7002-8000-000000000002",
      "program_id": "019c13ec-a1e8-7001-8000-000000000001",
      "program_name": "Housing top",
      "robot_id": "r1",
      "serial_number": "SN-0042",
      "revision": 1,
      "status": "cancelled",
      "quality_status": null,
      "created_at": "2026-01-31T12:00:10.000000Z",
      "updated_at": "2026-01-31T12:00:14.000000Z",
      "started_at": "2026-01-31T12:00:10.000000Z",
      "completed_at": "2026-01-31T12:00:14.000000Z",
      "error_message": "cancelled at the panel"
    }
  },
  "ProgramCompleted": {
    "event_id": "019c13ec-dc80-7008-8000-000000000008",
    "event_name": "ProgramCompleted",
    "timestamp": "2026-01-31T12:00:16.000000Z",
    "schema_version": 3,
    "service_version": "1.2.3-test",
    "kiosk_serial_number": "K-7",
    "data": {
      "run_id": "019c13ec-c510-7002-8000-000000000002",
      "program_id": "019c13ec-a1e8-7001-8000-000000000001",
      "program_name": "Housing top",
      "robot_id": "r1",
      "serial_number": "SN-0042",
      "revision": 1,
      "status": "completed",
      "quality_status": "passed",
      "created_at": "2026-01-31T12:00:10.000000Z",
      "updated_at": "2026-01-31T12:00:16.000000Z",
      "started_at": "2026-01-31T12:00:10.000000Z",
      "completed_at": "2026-01-31T12:00:16.000000Z",
      "passed": true,
      "unit_system": "metric",
      "qc_checks": [
        {
          "name": "flatness",
          "status": "passed",
          "value": 0.12,
          "nominal": 0,
          "delta": 0.12,
          "threshold": 0.2,
          "unit": "mm"
        }
      ],
      "defects": [
        {
          "id": "d1",
          "type": "scratch",
          "confidence": 0.82,
          "severity": "low"
        }
      ],
      "files": [
        {
          "name": "frame-019c13ec-cce0-7003-8000-000000000003.npy",
          "type": "array",
          "content_type": "application/octet-stream",
          "size_in_bytes": 140,
          "description": null,
          "href": "/runs/019c13ec-c510-7002-8000-000000000002/files/frame-019c13ec-cce0-7003-8000-000000000003.npy",
          "step_index": 2,
          "frame_id": "019c13ec-cce0-7003-8000-000000000003",
          "created_at": "2026-01-31T12:00:14.000000Z",
          "updated_at": "2026-01-31T12:00:14.000000Z",
          "deleted_at": null
        }
      ]
    }
  },
  "WebhookTest": {
    "event_id": "019c13ec-a9b9-7005-8000-000000000005",
    "event_name": "WebhookTest",
    "timestamp": "2026-01-31T12:00:03.001000Z",
    "schema_version": 3,
    "service_version": "1.2.3-test",
    "kiosk_serial_number": "K-7",
    "data": {
      "webhook_id": "019c13ec-a5d1-7004-8000-000000000004",
      "webhook_name": "MES",
      "message": "a test event: no run stands behind it"
    }
  }
};

/** Answers of a small cell, by operation. */
export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = {
  "listRuns": {
    "runs": [
      {
        "id": "019c13ec-c510-7002-8000-000000000002",
        "program_id": "019c13ec-a1e8-7001-8000-000000000001",
        "program_name": "Housing top",
        "status": "completed",
        "quality_status": "passed",
        "progress": {
          "total_steps": 2,
          "completed_steps": 2,
          "current_step": null
        },
        "serial_number": "SN-0042",
        "revision": 1,
        "metadata": {
          "lot": "A7"
        },
        "started_at": "2026-01-31T12:00:10.000000Z",
        "completed_at": "2026-01-31T12:00:16.000000Z",
        "error_message": null,
        "created_at": "2026-01-31T12:00:10.000000Z",
        "updated_at": "2026-01-31T12:00:16.000000Z",
        "links": {
          "self": {
            "href": "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002",
            "method": "GET"
          },
          "program": {
            "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
            "method": "GET"
          },
          "cancel": null,
          "websocket": null
        }
      }
    ],
    "total": 1,
    "limit": 1,
    "offset": 0
  },
  "getActiveRun": {
    "active": false,
    "run": null
  },
  "getRun": {
    "id": "019c13ec-c510-7002-8000-000000000002",
    "program_id": "019c13ec-a1e8-7001-8000-000000000001",
    "status": "completed",
    "quality_status": "passed",
    "trace_id": null,
    "serial_number": "SN-0042",
    "revision": 1,
    "metadata": {
      "lot": "A7"
    },
    "progress": {
      "total_steps": 2,
      "completed_steps": 2,
      "current_step": null
    },
    "steps": {
      "completed": [
        {
          "index": 1,
          "type": "move_robot",
          "name": "approach",
          "status": "completed",
          "started_at": "2026-01-31T12:00:11.000000Z",
          "completed_at": "2026-01-31T12:00:12.000000Z",
          "result": null,
          "error": null
        },
        {
          "index": 2,
          "type": "capture_frame",
          "name": "top face",
          "status": "completed",
          "started_at": "2026-01-31T12:00:12.000000Z",
          "completed_at": "2026-01-31T12:00:14.000000Z",
          "result": {
            "frame_id": "019c13ec-cce0-7003-8000-000000000003",
            "checks": [
              {
                "name": "flatness",
                "status": "passed",
                "value": 0.12,
                "nominal": 0,
                "delta": 0.12,
                "threshold": 0.2
              }
            ],
            "defects": [
              {
                "id": "d1",
                "type": "scratch",
                "confidence": 0.82,
                "severity": "low"
              }
            ]
          },
          "error": null
        }
      ],
      "in_progress": null,
      "pending": []
    },
    "started_at": "2026-01-31T12:00:10.000000Z",
    "completed_at": "2026-01-31T12:00:16.000000Z",
    "error_message": null,
    "results": {
      "frame_ids": [
        "019c13ec-cce0-7003-8000-000000000003"
      ]
    },
    "event_log": [],
    "webhook_deliveries": [
      {
        "id": "019c13ec-dc80-7007-8000-000000000007",
        "webhook_id": "019c13ec-a5d1-7004-8000-000000000004",
        "webhook_name": "MES",
        "event_name": "ProgramCompleted",
        "status": "delivered",
        "on_failure_mode": "IGNORE",
        "attempts": 2,
        "last_error": null
      }
    ],
    "webhook_delivery": {
      "delivered": 1,
      "failed": 0,
      "pending": 0,
      "all_ok": true
    },
    "files": [
      {
        "name": "frame-019c13ec-cce0-7003-8000-000000000003.npy",
        "type": "array",
        "content_type": "application/octet-stream",
        "size_in_bytes": 140,
        "description": null,
        "href": "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002/files/frame-019c13ec-cce0-7003-8000-000000000003.npy",
        "step_index": 2,
        "frame_id": "019c13ec-cce0-7003-8000-000000000003",
        "created_at": "2026-01-31T12:00:14.000000Z",
        "updated_at": "2026-01-31T12:00:14.000000Z",
        "deleted_at": null
      }
    ],
    "created_at": "2026-01-31T12:00:10.000000Z",
    "updated_at": "2026-01-31T12:00:16.000000Z",
    "links": {
      "self": {
        "href": "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002",
        "method": "GET"
      },
      "program": {
        "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
        "method": "GET"
      },
      "cancel": null,
      "websocket": null
    }
  },
  "listProgramRuns": {
    "runs": [
      {
        "id": "019c13ec-c510-7002-8000-000000000002",
        "program_id": "019c13ec-a1e8-7001-8000-000000000001",
        "program_name": "Housing top",
        "status": "completed",
        "quality_status": "passed",
        "progress": {
          "total_steps": 2,
          "completed_steps": 2,
          "current_step": null
        },
        "serial_number": "SN-0042",
        "revision": 1,
        "metadata": {
          "lot": "A7"
        },
        "started_at": "2026-01-31T12:00:10.000000Z",
        "completed_at": "2026-01-31T12:00:16.000000Z",
        "error_message": null,
        "created_at": "2026-01-31T12:00:10.000000Z",
        "updated_at": "2026-01-31T12:00:16.000000Z",
        "links": {
          "self": {
            "href": "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002",
            "method": "GET"
          },
          "program": {
            "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
            "method": "GET"
          },
          "cancel": null,
          "websocket": null
        }
      }
    ],
    "total": 1,
    "limit": 1,
    "offset": 0
  },
  "listPrograms": {
    "programs": [
      {
        "id": "019c13ec-a1e8-7001-8000-000000000001",
        "name": "Housing top",
        "description": "Flatness of the top face",
        "robot_ids": [
          "r1"
        ],
        "sensor_id": "ljx-1",
        "status": "active",
        "steps": [
          {
            "type": "move_robot",
            "name": "approach"
          },
          {
            "type": "capture_frame",
            "name": "top face",
            "params": {
              "exposure_us": 40
            }
          }
        ],
        "metadata": {
          "line": 4
        },
        "run_count": 1,
        "created_at": "2026-01-31T12:00:01.000000Z",
        "updated_at": "2026-01-31T12:00:01.000000Z",
        "links": {
          "self": {
            "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
            "method": "GET"
          },
          "runs": {
            "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001/runs",
            "method": "GET"
          }
        }
      }
    ],
    "total": 1,
    "limit": 1,
    "offset": 0
  },
  "getProgram": {
    "id": "019c13ec-a1e8-7001-8000-000000000001",
    "name": "Housing top",
    "description": "Flatness of the top face",
    "robot_ids": [
      "r1"
    ],
    "sensor_id": "ljx-1",
    "status": "active",
    "steps": [
      {
        "type": "move_robot",
        "name": "approach"
      },
      {
        "type": "capture_frame",
        "name": "top face",
        "params": {
          "exposure_us": 40
        }
      }
    ],
    "metadata": {
      "line": 4
    },
    "run_count": 1,
    "created_at": "2026-01-31T12:00:01.000000Z",
    "updated_at": "2026-01-31T12:00:01.000000Z",
    "links": {
      "self": {
        "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
        "method": "GET"
      },
      "runs": {
        "href": "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001/runs",
        "method": "GET"
      }
    }
  },
  "getQualityReport": {
    "run_id": "019c13ec-c510-7002-8000-000000000002",
    "quality_report": {
      "status": "passed",
      "final": true,
      "checks": [
        {
          "name": "flatness",
          "status": "passed",
          "value": 0.12,
          "nominal": 0,
          "delta": 0.12,
          "threshold": 0.2,
          "canonical_units": "mm"
        }
      ],
      "defects": [
        {
          "id": "d1",
          "type": "scratch",
          "confidence": 0.82,
          "severity": "low"
        }
      ],
      "summary": "1 of 1 checks passed"
    }
  },
  "getDefects": {
    "run_id": "019c13ec-c510-7002-8000-000000000002",
    "defects": [
      {
        "id": "d1",
        "type": "scratch",
        "confidence": 0.82,
        "severity": "low"
      }
    ]
  },
  "listRunFiles": [
    {
      "name": "frame-019c13ec-cce0-7003-8000-000000000003.npy",
      "type": "array",
      "content_type": "application/octet-stream",
      "size_in_bytes": 140,
      "description": null,
      "href": "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002/files/frame-019c13ec-cce0-7003-8000-000000000003.npy",
      "step_index": 2,
      "frame_id": "019c13ec-cce0-7003-8000-000000000003",
      "created_at": "2026-01-31T12:00:14.000000Z",
      "updated_at": "2026-01-31T12:00:14.000000Z",
      "deleted_at": null
    }
  ],
  "getFrame": {
    "id": "019c13ec-cce0-7003-8000-000000000003",
    "session_id": "session-1",
    "sequence_number": 1,
    "frame_type": "heightmap",
    "file_path": "/sensor/frames/019c13ec-cce0-7003-8000-000000000003/file.npy",
    "file_size_bytes": 140,
    "width": 3,
    "height": 2,
    "joint_positions": [
      0,
      1.5,
      -2,
      0,
      0.7,
      0
    ],
    "tcp_position": null,
    "capture_timestamp": "2026-01-31T12:00:12.000000Z",
    "metadata": null,
    "created_at": "2026-01-31T12:00:12.000000Z",
    "run_id": "019c13ec-c510-7002-8000-000000000002",
    "step_index": 2,
    "sensor_id": "ljx-1",
    "geometry": {
      "x_pitch_mm": 0.1,
      "y_pitch_mm": 0.2,
      "x_origin_mm": 0,
      "y_origin_mm": 0,
      "height": {
        "dtype": "u16",
        "scale_mm": 0.01,
        "offset_mm": -5,
        "invalid": [
          0
        ]
      },
      "luminance": null
    }
  },
  "listFrameFiles": {
    "frame_id": "019c13ec-cce0-7003-8000-000000000003",
    "session_id": "session-1",
    "available_formats": [
      "npy"
    ],
    "files": {
      "npy": {
        "href": "http://cell.factory:8000/sensor/frames/019c13ec-cce0-7003-8000-000000000003/file.npy",
        "content_type": "application/octet-stream",
        "size_in_bytes": 140
      }
    }
  },
  "getHealth": {
    "status": "healthy",
    "components": {
      "log": {
        "status": "healthy",
        "id": null,
        "detail": null,
        "enabled": null
      },
      "recorder": {
        "status": "healthy",
        "id": null,
        "detail": null,
        "enabled": null
      }
    }
  },
  "getVersion": {
    "service-version": "1.2.3-test"
  },
  "getLiveness": {
    "status": "alive"
  },
  "listWebhooks": [
    {
      "id": "019c13ec-a5d1-7004-8000-000000000004",
      "name": "MES",
      "url": "https://mes.factory/inspection",
      "subscribed_events": [
        "ProgramCompleted",
        "ProgramFailed"
      ],
      "on_failure_mode": "IGNORE",
      "enabled": true,
      "has_secret": true,
      "delivery_timeout_seconds": 3,
      "retry_backoff_seconds": 1,
      "max_retries": 3,
      "created_at": "2026-01-31T12:00:02.001000Z",
      "updated_at": "2026-01-31T12:00:02.001000Z"
    }
  ],
  "getWebhook": {
    "id": "019c13ec-a5d1-7004-8000-000000000004",
    "name": "MES",
    "url": "https://mes.factory/inspection",
    "subscribed_events": [
      "ProgramCompleted",
      "ProgramFailed"
    ],
    "on_failure_mode": "IGNORE",
    "enabled": true,
    "has_secret": true,
    "delivery_timeout_seconds": 3,
    "retry_backoff_seconds": 1,
    "max_retries": 3,
    "created_at": "2026-01-31T12:00:02.001000Z",
    "updated_at": "2026-01-31T12:00:02.001000Z"
  },
  "listWebhookDeliveries": [
    {
      "id": "019c13ec-dc80-7007-8000-000000000007",
      "webhook_id": "019c13ec-a5d1-7004-8000-000000000004",
      "program_run_id": "019c13ec-c510-7002-8000-000000000002",
      "event_name": "ProgramCompleted",
      "on_failure_mode": "IGNORE",
      "status": "delivered",
      "attempts": 2,
      "last_status_code": 204,
      "last_error": null,
      "next_retry_at": null,
      "delivered_at": "2026-01-31T12:00:17.006000Z",
      "created_at": "2026-01-31T12:00:16.000000Z",
      "updated_at": "2026-01-31T12:00:17.006000Z",
      "payload": EVENT_EXAMPLES.ProgramCompleted
    },
    {
      "id": "019c13ec-a9b9-7006-8000-000000000006",
      "webhook_id": "019c13ec-a5d1-7004-8000-000000000004",
      "program_run_id": null,
      "event_name": "WebhookTest",
      "on_failure_mode": "IGNORE",
      "status": "failed",
      "attempts": 1,
      "last_status_code": 503,
      "last_error": "the receiver answered 503",
      "next_retry_at": null,
      "delivered_at": null,
      "created_at": "2026-01-31T12:00:03.001000Z",
      "updated_at": "2026-01-31T12:00:03.004000Z",
      "payload": EVENT_EXAMPLES.WebhookTest
    }
  ],
  "getWebhookDelivery": {
    "id": "019c13ec-dc80-7007-8000-000000000007",
    "webhook_id": "019c13ec-a5d1-7004-8000-000000000004",
    "program_run_id": "019c13ec-c510-7002-8000-000000000002",
    "event_name": "ProgramCompleted",
    "on_failure_mode": "IGNORE",
    "status": "delivered",
    "attempts": 2,
    "last_status_code": 204,
    "last_error": null,
    "next_retry_at": null,
    "delivered_at": "2026-01-31T12:00:17.006000Z",
    "created_at": "2026-01-31T12:00:16.000000Z",
    "updated_at": "2026-01-31T12:00:17.006000Z",
    "attempt_history": [
      {
        "attempt_number": 2,
        "started_at": "2026-01-31T12:00:17.004000Z",
        "completed_at": "2026-01-31T12:00:17.005000Z",
        "status_code": 204,
        "response_body": "",
        "response_headers": {
          "server": "mes/4.2"
        },
        "error": null
      },
      {
        "attempt_number": 1,
        "started_at": "2026-01-31T12:00:16.001000Z",
        "completed_at": "2026-01-31T12:00:16.002000Z",
        "status_code": 503,
        "response_body": "starting",
        "response_headers": {
          "server": "mes/4.2",
          "content-type": "text/plain"
        },
        "error": "the receiver answered 503"
      }
    ],
    "payload": EVENT_EXAMPLES.ProgramCompleted
  },
  "createWebhook": {
    "id": "019c13ed-8861-7009-8000-000000000009",
    "name": "Line display",
    "url": "http://display.factory:8080/runs",
    "subscribed_events": [
      "ProgramStarted",
      "ProgramCompleted",
      "ProgramFailed",
      "ProgramCancelled"
    ],
    "on_failure_mode": "WARN",
    "enabled": true,
    "has_secret": true,
    "delivery_timeout_seconds": 3,
    "retry_backoff_seconds": 1,
    "max_retries": 5,
    "created_at": "2026-01-31T12:01:00.001000Z",
    "updated_at": "2026-01-31T12:01:00.001000Z"
  },
  "updateWebhook": {
    "id": "019c13ec-a5d1-7004-8000-000000000004",
    "name": "MES",
    "url": "https://mes.factory/inspection",
    "subscribed_events": [
      "ProgramCompleted",
      "ProgramFailed"
    ],
    "on_failure_mode": "IGNORE",
    "enabled": true,
    "has_secret": true,
    "delivery_timeout_seconds": 4.5,
    "retry_backoff_seconds": 2,
    "max_retries": 3,
    "created_at": "2026-01-31T12:00:02.001000Z",
    "updated_at": "2026-01-31T12:01:00.002000Z"
  },
  "testWebhook": {
    "delivered": true,
    "status_code": 204,
    "error": null,
    "delivery_id": "019c13ed-8863-700b-8000-00000000000b"
  },
  "retryWebhookDelivery": {
    "id": "019c13ec-a9b9-7006-8000-000000000006",
    "webhook_id": "019c13ec-a5d1-7004-8000-000000000004",
    "program_run_id": null,
    "event_name": "WebhookTest",
    "on_failure_mode": "IGNORE",
    "status": "delivered",
    "attempts": 2,
    "last_status_code": 204,
    "last_error": null,
    "next_retry_at": null,
    "delivered_at": "2026-01-31T12:01:00.009000Z",
    "created_at": "2026-01-31T12:00:03.001000Z",
    "updated_at": "2026-01-31T12:01:00.009000Z",
    "attempt_history": [
      {
        "attempt_number": 2,
        "started_at": "2026-01-31T12:01:00.007000Z",
        "completed_at": "2026-01-31T12:01:00.008000Z",
        "status_code": 204,
        "response_body": "",
        "response_headers": {
          "server": "mes/4.2"
        },
        "error": null
      },
      {
        "attempt_number": 1,
        "started_at": "2026-01-31T12:00:03.002000Z",
        "completed_at": "2026-01-31T12:00:03.003000Z",
        "status_code": 503,
        "response_body": "starting",
        "response_headers": {
          "server": "mes/4.2",
          "content-type": "text/plain"
        },
        "error": "the receiver answered 503"
      }
    ],
    "payload": EVENT_EXAMPLES.WebhookTest
  }
};

/** An answer to a request that it does not take. */
export const ERROR_EXAMPLE: unknown = {
  "code": "invalid_parameter",
  "message": "query parameter limit must be an integer from 1 to 1000",
  "params": {
    "field": "limit",
    "in": "query",
    "value": "5000",
    "allowed": "an integer from 1 to 1000"
  },
  "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
  "retryable": false
};
